import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { PROVIDER_TYPES } from '../../kernel/provider-types.ts'
import { ConfigError } from './config.ts'
import { FIELDS, type Field } from './fields.ts'
import type { Env } from './model.ts'
import { targetFields } from './target-fields.ts'

/** A setting that holds a secret. Each may come from a file instead: `NAME_FILE` is its path. */
export type SecretSetting = {
  name: string
  /** The parts of its text that are secret. */
  parts(raw: string): string[]
}

const whole = (raw: string): string[] => [raw]

/** The packages of OpenTelemetry read these variables themselves. */
const OTEL_HEADERS = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']

/** All settings that hold secrets, from the tables of settings and of providers. */
export const SECRET_SETTINGS: readonly SecretSetting[] = [
  ...[FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')]
    .flatMap((table) => Object.values<Field<unknown>>(table))
    .flatMap(({ name, secrets }) => (secrets ? [{ name, parts: secrets }] : [])),
  ...Array.from(new Set(Object.values(PROVIDER_TYPES).flatMap(({ keyVariables }) => keyVariables)), named),
  ...OTEL_HEADERS.map(named),
]

function named(name: string): SecretSetting {
  return { name, parts: whole }
}

/** The variable that holds the path of a setting's file. */
export const fileVariable = (name: string): string => `${name}_FILE`

/** A larger file is no secret. The limit also applies to a device or a pipe. */
const MAX_BYTES = 1_048_576

/**
 * Returns the environment with the content of the files that `NAME_FILE` names as `NAME`, without the line break at its end. Throws
 * `ConfigError` for a setting that is given in both ways, and for a file that cannot be read or is empty.
 */
export function readSecretFiles(env: Env): Env {
  const problems: string[] = []
  const values: Record<string, string> = {}
  for (const { name } of SECRET_SETTINGS) {
    const path = env[fileVariable(name)] ?? ''
    if (path === '') continue
    if ((env[name] ?? '') !== '') problems.push(`${name} and ${fileVariable(name)} are both set: wanted one of them`)
    else values[name] = contentOf(path, (problem) => problems.push(`${fileVariable(name)} ${problem}`))
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return { ...env, ...values }
}

function contentOf(path: string, report: (problem: string) => void): string {
  try {
    const file = openSync(path, 'r')
    try {
      if (fstatSync(file).size > MAX_BYTES) throw Object.assign(new Error('too large'), { code: 'EFBIG' })
      const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
      if (text === '') report(`holds ${JSON.stringify(path)}, and the file is empty: write the secret into it`)
      return text
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    report(
      `holds ${JSON.stringify(path)}, which cannot be read (${code}): wanted the path of a file that this user can read`,
    )
    return ''
  }
}
