/** A simple command: its words without their quotes. */
export type ShellCommand = readonly string[]

/** The commands in a text for bash, as far as they can be read without running it. */
export type ShellText = {
  /** The commands that the text runs; if it is not understood, the most likely ones. */
  commands: readonly ShellCommand[]
  /** Whether the text is exactly one command, without shell redirection to a file, variable assignment or background execution. */
  isSingle: boolean
  /** Whether exactly these commands run, with exactly these words. */
  isUnderstood: boolean
}

const BLANK = /[ \t]+/y
const OPERATOR = /&&|\|\|?|[;&\n]/y
/** Does not match `<<`, `<(` and `>(`, which are not followed by the name of a file. */
const REDIRECTION = /\d*(?:>>|>\||[<>]&|<>|[<>])(?![<(])/y
/**
 * The parts of a word that the shell takes literally; `~`, `#`, `!` and `^` only within a word. Everything else is not understood: expansions, globs, braces,
 * comments, escapes.
 */
const WORD = /(?:[A-Za-z0-9_@%+=:,./-]+|(?<=[\w@%+,./^~#!-])[~#!^]+|(?<=[=:])[#!^]+|'[^'\0]*'|"[^"$`\\\0]*")+/y
const QUOTED = /'([^']*)'|"([^"]*)"/g

const ASSIGNMENT = /^[A-Za-z_]\w*(\[.*\])?\+?=/
/** Words at the place of a command that are followed by another command. */
const KEYWORDS: ReadonlySet<string> = new Set(
  'if then elif else fi for while until do done case esac select in time coproc function'.split(' '),
)

type Read = { commands: string[][]; words: string[]; isRedirected: boolean; isPlain: boolean }

/** Reads the simple part of bash's syntax. Any other text counts as not understood. */
export function readShellText(text: string): ShellText {
  const found = readCommands(text.trim())
  if (!found) return { commands: likelyCommands(text), isSingle: false, isUnderstood: false }
  const commands = found.commands.map(withoutPrefix).filter((words) => words.length > 0)
  const isSingle = found.isPlain && found.commands.length === 1 && commands[0]?.length === found.commands[0]?.length
  return { commands, isSingle, isUnderstood: true }
}

/** Returns `undefined` for a text that is not understood. */
function readCommands(text: string): Read | undefined {
  const read: Read = { commands: [], words: [], isRedirected: false, isPlain: true }
  for (let at = 0; at < text.length; ) {
    const token = tokenAt(text, at)
    if (!token || !take(token, read)) return undefined
    at += token.text.length
  }
  endCommand(read)
  return read.isRedirected ? undefined : read
}

type Token = { kind: 'blank' | 'operator' | 'redirection' | 'word'; text: string }

function tokenAt(text: string, at: number): Token | undefined {
  const kinds = { blank: BLANK, redirection: REDIRECTION, operator: OPERATOR, word: WORD } as const
  for (const [kind, expression] of Object.entries(kinds)) {
    expression.lastIndex = at
    const [found] = expression.exec(text) ?? []
    if (found !== undefined) return { kind: kind as Token['kind'], text: found }
  }
  return undefined
}

/** Returns whether the token is understood at its place. */
function take({ kind, text }: Token, read: Read): boolean {
  if (kind === 'blank') return true
  if (kind === 'word') {
    if (read.isRedirected) read.isRedirected = false
    else read.words.push(text.replace(QUOTED, (_match, single?: string, double?: string) => single ?? double ?? ''))
    return true
  }
  if (read.isRedirected) return false // The last redirection has no target.
  read.isPlain = false
  if (kind === 'redirection') read.isRedirected = true
  else endCommand(read)
  return true
}

function endCommand(read: Read): void {
  if (read.words.length > 0) read.commands.push(read.words)
  read.words = []
}

/** Leaves out the assignments and keywords in front of a command. */
function withoutPrefix(words: readonly string[]): ShellCommand {
  const first = words.findIndex((word) => !ASSIGNMENT.test(word) && !KEYWORDS.has(word))
  return first < 0 ? [] : words.slice(first)
}

/** The commands of a text if quotes and escapes are ignored and each special character begins a new command. */
function likelyCommands(text: string): ShellCommand[] {
  return text
    .replace(/['"\\]/g, '')
    .split(/[;&|<>$`(){}!\r\n]+/)
    .map((part) => withoutPrefix(part.split(/\s+/).filter((word) => word !== '')))
    .filter((words) => words.length > 0)
}
