import { Argument, type Command } from 'commander'
import type { Cli } from '../cli.ts'

export function defineCompletion(command: Command, { output }: Cli): void {
  command
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\n  source <(ae completion bash)\n  source <(ae completion zsh)\n  ae completion fish | source',
    )
    .action((shell: 'bash' | 'zsh' | 'fish') =>
      output.out({ bash, zsh, fish }[shell](wordsOf(command.parent ?? command))),
    )
}

type Words = { name: string; summary: string; words: string[] }

/** Each command with its subcommands and options. */
const wordsOf = ({ commands }: Command): Words[] =>
  commands.map((each) => ({
    name: each.name(),
    summary: each.summary(),
    words: [
      ...each.commands.map((inner) => inner.name()),
      ...new Set(
        [each, ...each.commands].flatMap(({ options }) => options.map(({ long }) => long ?? '')).filter(Boolean),
      ),
    ],
  }))

function bash(commands: readonly Words[]): string {
  const cases = commands.map(({ name, words }) => `    ${name}) words="${words.join(' ')}" ;;`).join('\n')
  return `_ae() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases}
    *) words="" ;;
  esac
  [ "$COMP_CWORD" -gt 1 ] || words="${commands.map(({ name }) => name).join(' ')}"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _ae ae
`
}

/** zsh reads the functions of bash. */
const zsh = (commands: readonly Words[]): string =>
  `autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n${bash(commands)}`

const fish = (commands: readonly Words[]): string =>
  commands
    .flatMap(({ name, summary, words }) => [
      `complete -c ae -n __fish_use_subcommand -f -a ${name} -d "${summary}"`,
      ...words
        .filter((word) => word.startsWith('--'))
        .map((word) => `complete -c ae -n "__fish_seen_subcommand_from ${name}" -l ${word.slice(2)}`),
      ...words
        .filter((word) => !word.startsWith('--'))
        .map((word) => `complete -c ae -n "__fish_seen_subcommand_from ${name}" -f -a ${word}`),
    ])
    .map((line) => `${line}\n`)
    .join('')
