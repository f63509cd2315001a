import { join } from 'node:path'
import { authProblems, openDoorWarning } from './auth.ts'
import { FIELDS, type Field, type Form, targetFields, type ValuesOf } from './fields.ts'
import { type Env, type IsSet, keyWarning, type ModelTarget, targetProblems, toTarget } from './model.ts'
import { InvalidValue } from './values.ts'

type Values = ValuesOf<typeof FIELDS>

/** What the process was told, checked (D1.3). Durations are milliseconds. */
export type Config = Readonly<
  Values & {
    workspaceDir: string
    /** Every run's model; the standalone form has the demo where nothing is configured (D1.4). */
    model: ModelTarget | undefined
    /** The server-wide failover target. */
    fallback: ModelTarget | undefined
    /** Values that no log line may show. */
    secrets: readonly string[]
    /** What is allowed but worth a line at start. */
    warnings: readonly string[]
  }
>

/** All that is wrong with the environment, one line each; the process exits with 78 before it opens anything. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Reads the environment, an empty variable as an unset one. Throws `ConfigError`. Whoever opens a file sees if it exists. */
export function loadConfig(env: Env, form: Form): Config {
  const reader = createReader(env, form)
  const values = reader.read(FIELDS)
  const main = reader.read(targetFields('MODEL'))
  const spare = reader.read(targetFields('FALLBACK_MODEL'))
  const isSet: IsSet = (name) => (env[name] ?? '') !== ''
  const problems = [
    ...reader.problems,
    ...targetProblems('MODEL', main.provider, isSet),
    ...targetProblems('FALLBACK_MODEL', spare.provider, isSet),
    ...crossProblems(values, form, isSet),
  ].filter((problem) => problem !== false)
  if (problems.length > 0) throw new ConfigError(problems)
  const targets = { model: toTarget(main, env), fallback: toTarget(spare, env) }
  return Object.freeze({
    ...values,
    workspaceDir: values.workspaceDir ?? join(values.dataDir, 'workspaces'),
    model: targets.model ?? (form === 'standalone' ? Object.freeze({ provider: 'demo', model: 'demo' }) : undefined),
    fallback: targets.fallback,
    secrets: Object.freeze([...reader.secrets, ...keysOf(targets)]),
    warnings: Object.freeze(warningsOf(values, form, targets)),
  })
}

type Targets = { model: ModelTarget | undefined; fallback: ModelTarget | undefined }

/** Reads tables of fields and gathers what is wrong with them, and what of them is secret. */
function createReader(env: Env, form: Form) {
  const problems: string[] = []
  const secrets: string[] = []
  const readOne = ({ name, parse, fallback, secrets: parts }: Field<unknown>) => {
    const given = env[name] ?? ''
    const raw = given !== '' ? given : typeof fallback === 'object' ? fallback[form] : fallback
    if (raw === undefined) return undefined
    secrets.push(...(parts?.(raw) ?? []))
    const value = parse(raw)
    if (!(value instanceof InvalidValue)) return value
    problems.push(`${name} ${parts ? 'does not fit' : `holds ${show(raw)}`}: wanted ${value.text}`)
    return undefined
  }
  const read = <Table extends Record<string, Field<unknown>>>(table: Table) =>
    Object.fromEntries(Object.entries(table).map(([key, field]) => [key, readOne(field)])) as ValuesOf<Table>
  return { problems, secrets, read }
}

/** A wrong value for a person to recognise: on one line, short, without the user name or the query of an address. */
function show(raw: string): string {
  const shown = raw.replace(/\/\/.*@/s, '//…@').replace(/\?.*/s, '?…')
  return JSON.stringify(shown.length > 80 ? `${shown.slice(0, 80)}…` : shown)
}

function crossProblems(values: Values, form: Form, isSet: IsSet): (string | false)[] {
  const isCluster = form === 'cluster'
  const { authMode, rateLimitStore, port, opsPort } = values
  return [
    ...authProblems(authMode, form, isSet),
    isSet('MASTER_KEY_PREVIOUS') && !isSet('MASTER_KEY') && 'MASTER_KEY_PREVIOUS wants MASTER_KEY, which is not set',
    rateLimitStore === 'redis' &&
      !isCluster &&
      !isSet('REDIS_URL') &&
      'REDIS_URL is not set, but RATE_LIMIT_STORE=redis: wanted redis://host:6379',
    port !== undefined && port > 0 && port === opsPort && `OPS_PORT is ${opsPort} like PORT: wanted another one`,
    isCluster && !isSet('REDIS_URL') && 'REDIS_URL is not set: the cluster form wants redis://host:6379',
  ]
}

function keysOf({ model, fallback }: Targets): string[] {
  return [model?.apiKey, fallback?.apiKey].filter((key) => key !== undefined)
}

function warningsOf(values: Values, form: Form, { model, fallback }: Targets): string[] {
  const answer =
    form === 'standalone' ? 'the built-in demo answers' : 'only tenants with a route of their own get answers'
  return [
    model === undefined && `no model is configured, ${answer}: set MODEL and MODEL_PROVIDER`,
    keyWarning('MODEL', model),
    keyWarning('FALLBACK_MODEL', fallback),
    openDoorWarning(values, form),
  ].filter((warning) => warning !== false)
}
