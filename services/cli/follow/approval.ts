import { posix } from 'node:path'
import type { Schema } from '../../../shared/client/client.ts'
import { usageError } from '../exit-codes.ts'

/** `ask` asks the user, `never` denies all requests, `all` allows all. A rule allows its calls in every mode. */
export type Approval = { mode: 'ask' | 'never' | 'all'; rules: readonly Rule[] }

/** `subject` is `undefined` for a rule without brackets, which names every call of the tool. */
export type Rule = { text: string; toolName: string; subject: string | undefined }

type Asked = { toolName: string; input: Schema<'JsonObject'> }

/**
 * A rule is a tool's name, in which `*` matches any characters, and optionally a pattern for the target of the call:
 * `Write(notes/*)`, `Bash(npm test)`.
 */
export function parseRule(text: string): Rule {
  const [, toolName, subject] = /^([\w.*-]+)(?:\((.+)\))?$/s.exec(text.trim()) ?? []
  if (toolName === undefined)
    throw usageError(
      `--allow '${text}' is not a rule`,
      "A rule is a tool and what it acts on: --allow 'Write(notes/*)'",
    )
  return { text: text.trim(), toolName, subject }
}

/** The rule that allows the call. */
export const ruleFor = (rules: readonly Rule[], asked: Asked): Rule | undefined =>
  rules.find(
    ({ toolName, subject }) => matches(toolName, asked.toolName) && (subject === undefined || names(subject, asked)),
  )

/** Whether the target of the call certainly matches the rule. */
function names(rule: string, { input: { path, command, url } }: Asked): boolean {
  if (typeof path === 'string') return leadsInside(path) && matches(rule, posix.normalize(path))
  if (typeof command === 'string') return command === rule || (isOneCommand(command) && matches(rule, command.trim()))
  return typeof url === 'string' && namesAddress(rule, url)
}

/** Whether the path stays in the workspace. No rule names another one. */
const leadsInside = (path: string): boolean => !posix.isAbsolute(path) && !/^\.\.(\/|$)/.test(posix.normalize(path))

/** Characters with which a shell joins commands or replaces text. A command with one of them is allowed only by its exact spelling. */
const isOneCommand = (command: string): boolean => !/[;&|<>`$(){}\n\r\\]/.test(command)

/** Host and path are compared separately, so that no path or user name can be mistaken for a host. */
function namesAddress(rule: string, address: string): boolean {
  const url = URL.parse(address)
  const [, scheme = '', host = '', path = ''] = /^([a-z*]+):\/\/([^/?#]*)(.*)$/is.exec(rule) ?? []
  if (!url || url.username !== '' || url.password !== '') return false
  return (
    matches(scheme.toLowerCase(), url.protocol.slice(0, -1)) &&
    matches(host.toLowerCase(), url.host) &&
    (path === '' || matches(path, url.pathname + url.search))
  )
}

/** Whether the text matches the pattern, in which `*` matches any number of characters, including none. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return text === pattern
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}
