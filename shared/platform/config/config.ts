import { join } from 'node:path'
import { truncate } from '../../kernel/text.ts'
import { authProblems } from './auth.ts'
import { FIELDS, type Field, type Form, type ValuesOf } from './fields.ts'
import { type Env, type IsSet, keyWarning, type ModelTarget, targetProblems, toTarget } from './model.ts'
import { targetFields } from './target-fields.ts'
import { InvalidValue } from './values.ts'

type Values = ValuesOf<typeof FIELDS>

/** The checked settings of a process (D1.3c). Durations are milliseconds. */
export type Config = Readonly<
  Values & {
    workspaceDir: string
    /** The share of a process's room that one tenant may take: all of it if there is only one tenant, else half. */
    tenantShare: number
    /** The default model. Without configuration it is the demo in the standalone form (D1.4), and none in the cluster. */
    model: ModelTarget | undefined
    /** The model that runs fall back to when theirs fails. */
    fallback: ModelTarget | undefined
    /** All variables of the environment, for configuration files that refer to them. */
    variables: Env
    /** Values that must not appear in a log line. */
    secrets: readonly string[]
    /** Allowed but probably unintended settings, logged at start. */
    warnings: readonly string[]
  }
>

/** Every problem of the environment, one line each. The process exits with 78 before it opens anything. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Reads and checks the environment. An empty variable counts as unset. Throws `ConfigError`. Does not check that files exist. */
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
  const tenantShare = values.oidcIssuer === undefined ? 1 : 0.5
  const targets = { model: toTarget(main, env), fallback: toTarget(spare, env) }
  return Object.freeze({
    ...values,
    workspaceDir: values.workspaceDir ?? join(values.dataDir, 'workspaces'),
    tenantShare,
    runsPerTenant: values.runsPerTenant || Math.ceil(values.runsPerWorker * tenantShare),
    sessionsPerTenant: values.sessionsPerTenant || Math.ceil(values.sessionsPerWorker * tenantShare),
    model: targets.model ?? (form === 'standalone' ? Object.freeze({ provider: 'demo', model: 'demo' }) : undefined),
    fallback: targets.fallback,
    variables: env,
    secrets: Object.freeze([...reader.secrets, ...keysOf(targets)]),
    warnings: Object.freeze(warningsOf(form, targets)),
  })
}

type Targets = { model: ModelTarget | undefined; fallback: ModelTarget | undefined }

/** Reads tables of fields and collects their problems and their secrets. */
function createReader(env: Env, form: Form) {
  const problems: string[] = []
  const secrets: string[] = []
  const readOne = ({ name, parse, fallback, secrets: parts, isShown = !parts }: Field<unknown>) => {
    const given = env[name] ?? ''
    const raw = given !== '' ? given : typeof fallback === 'object' ? fallback[form] : fallback
    if (raw === undefined) return undefined
    secrets.push(...(parts?.(raw) ?? []))
    const value = parse(raw)
    if (!(value instanceof InvalidValue)) return value
    problems.push(`${name} ${isShown ? `holds ${show(raw)}` : 'does not fit'}: wanted ${value.text}`)
    return undefined
  }
  const read = <Table extends Record<string, Field<unknown>>>(table: Table) =>
    Object.fromEntries(Object.entries(table).map(([key, field]) => [key, readOne(field)])) as ValuesOf<Table>
  return { problems, secrets, read }
}

const MAX_SHOWN_CHARS = 80

/** Renders a wrong value for a message: one line, short, without the user name and the query of an address. */
function show(raw: string): string {
  const shown = raw.replace(/\/\/.*@/s, '//…@').replace(/\?.*/s, '?…')
  return JSON.stringify(truncate(shown, MAX_SHOWN_CHARS))
}

function crossProblems(values: Values, form: Form, isSet: IsSet): (string | false)[] {
  const isCluster = form === 'cluster'
  const { authMode, rateLimitStore, port, opsPort } = values
  const hasRedis = isSet('REDIS_URL') || isSet('REDIS_SENTINELS') || isSet('REDIS_CLUSTER')
  return [
    ...authProblems(authMode, form, isSet),
    isCluster &&
      isSet('MASTER_KEY_PREVIOUS') &&
      !isSet('MASTER_KEY') &&
      'MASTER_KEY_PREVIOUS needs MASTER_KEY, which is not set',
    rateLimitStore === 'redis' &&
      !isCluster &&
      !hasRedis &&
      'REDIS_URL is not set, but RATE_LIMIT_STORE=redis: wanted redis://host:6379',
    port !== undefined && port > 0 && port === opsPort && `OPS_PORT is ${opsPort} like PORT: wanted another one`,
    isCluster &&
      values.durability !== 'off' &&
      !isSet('MONGODB_URL') &&
      `DURABILITY=${values.durability} needs a store: MONGODB_URL is not set`,
    isSet('REDIS_SENTINELS') &&
      isSet('REDIS_CLUSTER') &&
      'REDIS_SENTINELS and REDIS_CLUSTER are both set: wanted one of them',
    isSet('WORKSPACE_STORE') &&
      !(isSet('WORKSPACE_STORE_ACCESS_KEY') && isSet('WORKSPACE_STORE_SECRET_KEY')) &&
      'WORKSPACE_STORE needs WORKSPACE_STORE_ACCESS_KEY and WORKSPACE_STORE_SECRET_KEY',
    isCluster && !hasRedis && 'REDIS_URL is not set: the cluster form needs redis://host:6379',
  ]
}

function keysOf({ model, fallback }: Targets): string[] {
  return [model?.apiKey, fallback?.apiKey].filter((key) => key !== undefined)
}

function warningsOf(form: Form, { model, fallback }: Targets): string[] {
  const answer =
    form === 'standalone' ? 'the built-in demo answers' : 'only tenants with a route of their own get answers'
  return [
    model === undefined && `no model is configured, ${answer}: set MODEL and MODEL_PROVIDER`,
    keyWarning('MODEL', model),
    keyWarning('FALLBACK_MODEL', fallback),
  ].filter((warning) => warning !== false)
}
