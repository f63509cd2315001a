import { randomBytes } from 'node:crypto'

/** The kinds of a tenant's things that another tenant might name. */
export const KINDS = [
  'session',
  'run',
  'permission',
  'tool_call',
  'customer',
  'instance',
  'secret',
  'webhook',
  'delivery',
  'flow',
  'trace',
  'flow_run',
  'key',
  'memory',
  'plan',
  'schedule',
  'batch',
  'response',
  'file',
] as const
export type Kind = (typeof KINDS)[number]
export type Ids = Record<Kind, string>

export const random = (bytes = 16) => randomBytes(bytes).toString('hex')

/** Ids of nobody, each of the same form and length as the other tenant's. */
export function unknownIds(ids: Ids): Ids {
  const unknown = Object.fromEntries(
    Object.entries(ids).map(([kind, id]) => [kind, id.replace(/[0-9a-f]{32}$/, () => random())]),
  ) as Ids
  return { ...unknown, response: responseOf(unknown) }
}

/** The id of a response names its run and its session (D31). */
export const responseOf = ({ run, session }: Pick<Ids, 'run' | 'session'>): string =>
  `resp_${run.slice('run_'.length)}01_${session}`

/** The kind of id that each parameter of a path takes. A route with another parameter has no fixture and breaks the promise. */
const PARAMETERS: Record<string, Kind> = {
  '/sessions/:id': 'session',
  '/sessions/:request_id': 'permission',
  '/permissions/:request_id': 'permission',
  '/ui/:id': 'session',
  '/openai/:id': 'response',
  '/openai/:file_id': 'file',
  '/customers/:id': 'customer',
  '/runs/:run_id': 'run',
  '/runs/:tool_use_id': 'tool_call',
  '/flows/:name': 'flow',
  '/dispatches/:id': 'trace',
  '/files/:file_id': 'file',
  '/plans/:id': 'plan',
  '/plans/:name': 'schedule',
  '/batches/:id': 'batch',
  '/config/:name of secrets': 'secret',
  '/config/:name of instances': 'instance',
  '/config/:name of webhooks': 'webhook',
  '/config/:id of webhooks': 'delivery',
}

export function kindOf(path: string, param: string): Kind | undefined {
  const [, first = '', second = ''] = path.split('/')
  return PARAMETERS[`/${first}/:${param}${first === 'config' ? ` of ${second}` : ''}`]
}

/** The values of parameters that every tenant has in common. */
export const COMMON: Record<string, string> = { version: '1' }

export type Body = object | FormData
