import { Argument, type Command } from 'commander'
import type { AgentEngine } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { idsOf, type Kind } from '../resolve-id.ts'

type Shell = 'bash' | 'zsh' | 'fish'

export function defineCompletion(command: Command, cli: Cli): void {
  command
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish', 'ids']))
    .argument('[words...]', 'with `ids`: a command, whose ids are printed, as the shells ask for them')
    .addHelpText(
      'after',
      '\n  source <(ae completion bash)\n  source <(ae completion zsh)\n  ae completion fish | source',
    )
    .action((shell: Shell | 'ids', words: string[]) =>
      shell === 'ids'
        ? printIds(words, cli)
        : cli.output.out({ bash, zsh, fish }[shell](wordsOf(command.parent ?? command))),
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

type Named = Kind | 'flow' | 'schedule'

/** The commands that take ids or names, and of what. */
const TAKES: Readonly<Record<string, readonly Named[]>> = {
  ...{
    attach: ['run', 'session', 'plan', 'batch'],
    cancel: ['run', 'plan', 'batch'],
    steer: ['run'],
    answer: ['run'],
    chat: ['session'],
  },
  ...{
    allow: ['permission'],
    deny: ['permission'],
    'approvals watch': ['permission'],
    'approvals forget': ['session'],
  },
  ...{ show: ['run', 'plan', 'permission', 'dispatch', 'session', 'batch'], logs: ['run', 'plan'] },
  why: ['run', 'plan', 'dispatch'],
  ...takes('plans', 'watch retry cancel', 'plan'),
  ...takes('dispatches', 'show replay', 'dispatch'),
  ...takes('flows', 'get check diff edit publish evaluate rollback rm run batch', 'flow'),
  'flows results': ['batch'],
  ...takes('schedules', 'get rm run', 'schedule'),
}

function takes(noun: string, verbs: string, kind: Named): Record<string, Named[]> {
  return Object.fromEntries(verbs.split(' ').map((verb) => [`${noun} ${verb}`, [kind]]))
}

const takers = (): string[] => [...new Set(Object.keys(TAKES).map((command) => command.replace(/ .*/, '')))]

const MOST = 50
const PATIENCE_MS = 2_000

/** Matches an id that a shell takes as one plain word. Other ids are left out of completions: bash would execute a `$(…)` in them. */
const IS_WORD = /^[\w.][\w.-]*$/

/** Prints the newest ids that a command accepts. It prints none if the server is slow or does not answer, because the shell waits meanwhile. */
async function printIds(words: readonly string[], { engine, output }: Cli): Promise<void> {
  const [name = '', inner] = words.filter((word) => !word.startsWith('-'))
  const command = [`${name} ${inner}`, name].find((each) => Object.hasOwn(TAKES, each)) ?? ''
  const kinds = TAKES[command] ?? []
  const client = await engine()
  const late = new Promise<string[]>((resolve) => setTimeout(resolve, PATIENCE_MS, []).unref())
  const found = Promise.all(kinds.map((kind) => namesOf(client, kind).catch(() => []))).then((all) => all.flat())
  const ids = await Promise.race([found, late])
  output.out(
    [...new Set(ids)]
      .filter((id) => IS_WORD.test(id))
      .map((id) => `${id}\n`)
      .join(''),
  )
}

async function namesOf(client: AgentEngine, kind: Named): Promise<string[]> {
  if (kind === 'flow') return (await client.flows.list().all(MOST)).map(({ name }) => name)
  if (kind !== 'schedule') return idsOf(client, kind, MOST)
  return (await client.raw.get('/plans/schedules', { query: { limit: MOST } })).schedules.map(({ name }) => name)
}

/** Ids are asked for where a word that is no option may be one. */
function bash(commands: readonly Words[]): string {
  const cases = commands.map(({ name, words }) => `    ${name}) words="${words.join(' ')}" ;;`).join('\n')
  return `_ae() {
  local words ids
  case "\${COMP_WORDS[1]}" in
${cases}
    *) words="" ;;
  esac
  if [ "$COMP_CWORD" -le 1 ]; then
    words="${commands.map(({ name }) => name).join(' ')}"
  elif [ "\${COMP_WORDS[COMP_CWORD]#-}" = "\${COMP_WORDS[COMP_CWORD]}" ]; then
    case "\${COMP_WORDS[1]}" in
    ${takers().join('|')})
      ids="$("\${COMP_WORDS[0]}" completion ids -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)"
      words="$words $ids" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _ae ae
`
}

/** zsh reads the functions of bash. */
const zsh = (commands: readonly Words[]): string =>
  `autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n${bash(commands)}`

const fish = (commands: readonly Words[]): string =>
  [
    ...commands.flatMap(({ name, summary, words }) => [
      `complete -c ae -n __fish_use_subcommand -f -a ${name} -d "${summary}"`,
      ...words
        .filter((word) => word.startsWith('--'))
        .map((word) => `complete -c ae -n "__fish_seen_subcommand_from ${name}" -l ${word.slice(2)}`),
      ...words
        .filter((word) => !word.startsWith('--'))
        .map((word) => `complete -c ae -n "__fish_seen_subcommand_from ${name}" -f -a ${word}`),
    ]),
    ...takers().map(
      (name) =>
        `complete -c ae -n "__fish_seen_subcommand_from ${name}" -f -a "(ae completion ids -- (commandline -opc)[2..])"`,
    ),
  ]
    .map((line) => `${line}\n`)
    .join('')
