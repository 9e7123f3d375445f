/** Option of all commands that ask the agent. */
export const readOption = { flags: '--read', help: 'Read by this command, and ask no agent.' } as const;
