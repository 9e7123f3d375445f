/** Until it holds, looking at each change; the test's own time limit ends a vain wait. */
export function changes(): { readonly onChange: () => void; until(condition: () => boolean): Promise<void> } {
  let wake = (): void => {};
  return {
    onChange: () => wake(),
    async until(condition) {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
