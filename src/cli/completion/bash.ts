import { type FlagWord, firstWords, groupsOf, type Words } from './words.ts';

/** The completion of bash. It needs no package of helpers, because an image or a rescue system may have none. */
export function bashCompletion({ commands, flags }: Words): string {
  const groups = [...groupsOf(commands)];
  const known = [...new Set([...firstWords(commands), ...commands.map(({ name }) => name)])];
  const withValue = [...flags, ...commands.flatMap((command) => command.flags)].filter(({ takesValue }) => takesValue);
  const words = [
    `    '') words='${firstWords(commands).join(' ')}' ;;`,
    ...groups.map(([group, inner]) => `    '${group}') words='${inner.join(' ')}' ;;`),
    ...commands.filter(({ values }) => values.length > 0).map(({ name, values }) => `    '${name}') words='${values.join(' ')}' ;;`),
    ...commands.filter(({ isFile }) => isFile).map(({ name }) => `    '${name}') COMPREPLY=($(compgen -f -- "$cur")) && return ;;`),
  ];
  const values = [
    ...flags.flatMap((flag) => valueCases('*', flag)),
    ...commands.flatMap((command) => command.flags.flatMap((flag) => valueCases(`'${command.name} '`, flag))),
  ];
  const own = commands.filter((command) => command.flags.length > 0);
  return `# Completion of device-agent for bash. Switch it on by: source <(device-agent completion bash)
_device_agent() {
  local IFS=$' \\t\\n' cur=\${COMP_WORDS[COMP_CWORD]} flag='' command='' words='' at word
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case $word in
    =) at=$((at + 1)) ;;
    ${unique(withValue.flatMap(({ names }) => names)).join('|')})
      if [[ \${COMP_WORDS[at + 1]} != '=' ]]; then
        at=$((at + 1))
        [[ $at == "$COMP_CWORD" ]] && flag=$word
      fi
      ;;
    -*) ;;
    *)
      case "\${command:+$command }$word" in
      ${known.map((name) => `'${name}'`).join('|')}) command="\${command:+$command }$word" ;;
      *) command="\${command:+$command }-" ;;
      esac
      ;;
    esac
  done
  # The shell takes "=" for a word of its own.
  if [[ $cur == '=' ]]; then
    flag=\${COMP_WORDS[COMP_CWORD - 1]}
    cur=''
  elif [[ $COMP_CWORD -gt 1 && \${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
    flag=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ -n $flag ]]; then
    case "$command $flag" in
${values.join('\n')}
    *)
      COMPREPLY=($(compgen -f -- "$cur"))
      return
      ;;
    esac
  elif [[ $cur == -* ]]; then
    words='${flags.flatMap(offered).join(' ')}'
    case $command in
${own.map(({ name, flags: inner }) => `    '${name}') words+=' ${inner.flatMap(offered).join(' ')}' ;;`).join('\n')}
    esac
  else
    case $command in
${words.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _device_agent device-agent
`;
}

/** Flags with a value end in "=", so that the value follows at once. */
const offered = ({ names, takesValue }: FlagWord): string[] =>
  names.map((name) => (takesValue && name.startsWith('--') ? `${name}=` : name));

function valueCases(command: string, { names, values }: FlagWord): string[] {
  if (values === undefined) return [];
  const pattern = names.map((name) => (command === '*' ? `*' ${name}'` : `${command}${name}`)).join('|');
  return [`    ${pattern}) words='${values.join(' ')}' ;;`];
}

const unique = (names: readonly string[]): string[] => [...new Set(names)];
