import { type FlagWord, firstWords, groupsOf, type Words } from './words.ts';

/** The completion of zsh, for a file `_device-agent` in `fpath` or for `source`. */
export function zshCompletion({ commands, flags }: Words): string {
  const known = [...new Set([...firstWords(commands), ...commands.map(({ name }) => name)])];
  const withValue = [...flags, ...commands.flatMap((command) => command.flags)].filter(({ takesValue }) => takesValue);
  const summaries = new Map(commands.map(({ name, summary }) => [name, summary]));
  const described = (prefix: string, words: readonly string[]): string =>
    words.map((word) => quoted(`${word}:${summaries.get(`${prefix}${word}`) ?? ''}`)).join(' ');
  return `#compdef device-agent
# Completion of device-agent for zsh.
_device_agent() {
  local flag='' command='' word at
  local -a offered
  for ((at = 2; at < CURRENT; at++)); do
    word=$words[at]
    case $word in
    ${[...new Set(withValue.flatMap(({ names }) => names))].join('|')})
      at=$((at + 1))
      [[ $at == $CURRENT ]] && flag=$word
      ;;
    -*) ;;
    *)
      case "\${command:+$command }$word" in
      ${known.map(quoted).join('|')}) command="\${command:+$command }$word" ;;
      *) command="\${command:+$command }-" ;;
      esac
      ;;
    esac
  done
  if [[ -z $flag && $PREFIX == --*=* ]]; then
    flag=\${PREFIX%%=*}
    compset -P 1 '*='
  fi
  if [[ -n $flag ]]; then
    case "$command $flag" in
${valueCases({ commands, flags }).join('\n')}
    *) _files ;;
    esac
  elif [[ $PREFIX == -* ]]; then
    offered=(${flags.flatMap(describedFlag).join(' ')})
    case $command in
${commands
  .filter((command) => command.flags.length > 0)
  .map(({ name, flags: own }) => `    ${quoted(name)}) offered+=(${own.flatMap(describedFlag).join(' ')}) ;;`)
  .join('\n')}
    esac
    _describe -o flag offered
  else
    case $command in
    '') offered=(${described('', firstWords(commands))}) ;;
${[...groupsOf(commands)].map(([group, inner]) => `    ${quoted(group)}) offered=(${described(`${group} `, inner)}) ;;`).join('\n')}
${commands
  .filter(({ values }) => values.length > 0)
  .map(({ name, values }) => `    ${quoted(name)}) offered=(${values.map(quoted).join(' ')}) ;;`)
  .join('\n')}
${commands
  .filter(({ isFile }) => isFile)
  .map(({ name }) => `    ${quoted(name)}) _files; return ;;`)
  .join('\n')}
    esac
    _describe word offered
  fi
}
if [[ $funcstack[1] == _device_agent || $funcstack[1] == _device-agent ]]; then
  _device_agent
else
  compdef _device_agent device-agent
fi
`;
}

function valueCases({ commands, flags }: Words): string[] {
  const cases = (pattern: (name: string) => string, { names, values }: FlagWord): string[] =>
    values === undefined ? [] : [`    ${names.map(pattern).join('|')}) compadd -- ${values.map(quoted).join(' ')} ;;`];
  return [
    ...flags.flatMap((flag) => cases((name) => `*' ${name}'`, flag)),
    ...commands.flatMap((command) => command.flags.flatMap((flag) => cases((name) => `'${command.name} ${name}'`, flag))),
  ];
}

const describedFlag = ({ names, help }: FlagWord): string[] => names.map((name) => quoted(`${name}:${help}`));

/** A word between single quotes: nothing in it means anything to the shell. */
const quoted = (text: string): string => `'${text.replace(/\s+/g, ' ').replaceAll("'", "'\\''")}'`;
