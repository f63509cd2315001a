import { type Ops, openOps } from '../../services/ops/open-ops.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { SILENT_LOG } from '../support/silent-log.ts'

export type TestOps = Ops & { get(path: string, init?: RequestInit): Promise<Response> }

/** Opens ops listeners on real sockets for one describe block, and closes them after each test. */
export function useOps(): (config?: Partial<Settings['ops']>, form?: Form) => Promise<TestOps> {
  const opened: Ops[] = []
  afterEach(() => Promise.all(opened.splice(0).map(({ close }) => close.close())))
  return async (config = {}, form = 'cluster') => {
    const log = SILENT_LOG
    const ops = await openOps({ ...DEFAULTS, ...config }, { form, log })
    opened.push(ops)
    return { ...ops, get: (path, init) => fetch(ops.url + path, init) }
  }
}

const DEFAULTS: Settings['ops'] = {
  host: '127.0.0.1',
  opsPort: 0,
  opsToken: undefined,
  allowedHosts: [],
  redisUrl: undefined,
  redisSentinels: undefined,
  redisCluster: undefined,
  clusterName: 'ae',
}

export const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`
