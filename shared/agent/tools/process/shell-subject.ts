import { posix } from 'node:path'
import type { RuleSubject } from '../port.ts'
import { matchesWildcard } from '../wildcard.ts'
import { readShellText, type ShellCommand } from './shell-words.ts'

/** Characters with a special meaning for a program that is itself a shell, or that understands patterns; some only at the beginning of a word. */
const MAY_BE_CODE = /[$`|;&<>(){}*?[\]\\]|(?:^|[\s=:])~|(?:^|\s)[#!]/
const PLAIN_WORD = /^[A-Za-z0-9_@%+=:,./-](?:[A-Za-z0-9_@%+=:,./^#!-]|(?<![=:])~)*$/

/**
 * Returns the subject of a shell command for rules such as `Bash(npm test)`: its words, with one blank between two, and words that had to be
 * quoted in single quotes. A rule matches the spelling of a command; it is no security boundary, because programs that a command starts are
 * not visible here. If it is uncertain whether a line runs the command of a rule, `includes` returns `undefined`.
 */
export function shellSubject(command: string): RuleSubject {
  const { commands, isSingle, isUnderstood } = readShellText(command)
  return {
    isOnly: (rule) => isSingle && matchesWildcard(spaced(rule), quoted(commands[0] ?? [])),
    includes(rule) {
      const pattern = spaced(rule).replace(/^\S*\//, '')
      if (commands.some((words) => spellings(words).some((spelling) => matchesRule(pattern, spelling)))) return true
      return isUnderstood && commands.every((words) => isPlainlyAnother(words, pattern)) ? false : undefined
    },
  }
}

/** The rule in the same spelling as a subject: one blank between two words, and single quotes. */
const spaced = (rule: string): string =>
  rule
    .trim()
    .replaceAll('"', "'")
    .replace(/[ \t]+/g, ' ')

const quoted = (words: ShellCommand): string =>
  words.map((word) => (PLAIN_WORD.test(word) ? word : `'${word}'`)).join(' ')

/** The spellings of a command, so that a rule for `rm` also matches `/bin/rm`, and a rule with plain words also matches quoted ones. */
function spellings([path = '', ...words]: ShellCommand): string[] {
  const named = [posix.basename(path), ...words]
  return [quoted(named), named.join(' ')]
}

/** `rm *` also matches `rm` without arguments. */
const matchesRule = (pattern: string, spelling: string): boolean =>
  matchesWildcard(pattern, spelling) || (pattern.endsWith(' *') && spelling === pattern.slice(0, -2))

/**
 * Whether a command that a rule does not match certainly differs from the rule's command, even if options are in other places or
 * spelled differently: `git status` certainly differs from `git push*`, but `git -c x=y push` may be the same.
 */
function isPlainlyAnother([path = '', ...words]: ShellCommand, pattern: string): boolean {
  const [program = '', ...named] = pattern.split(' ')
  if (words.some((word) => mayRun(word, program)) || deletesFiles(path, words, program)) return false
  if (!matchesWildcard(program, posix.basename(path))) return true
  for (const [n, name] of named.entries()) {
    const word = words[n]
    if (name.startsWith('-')) return !words.slice(n).some((each) => each.startsWith('-'))
    if (word === undefined) return true
    if (name.startsWith('*') || !PLAIN_WORD.test(word) || word.startsWith('-')) return false
    if (!matchesWildcard(name, word)) return true
  }
  return false
}

/** `find -delete` deletes like these programs. */
const DELETERS = ['rm', 'rmdir', 'unlink', 'shred']

const deletesFiles = (path: string, words: readonly string[], program: string): boolean =>
  posix.basename(path) === 'find' &&
  words.includes('-delete') &&
  DELETERS.some((each) => matchesWildcard(program, each))

/** `sudo rm x`, `sh -c 'rm x'` and `find . -exec rm x` may run `rm`. */
const mayRun = (word: string, program: string): boolean =>
  MAY_BE_CODE.test(word) ||
  word
    .replace(/['"]/g, '')
    .split(/[^A-Za-z0-9_.+-]+/)
    .some((part) => part !== '' && matchesWildcard(program, part))
