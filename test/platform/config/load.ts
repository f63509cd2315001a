import { ConfigError, loadConfig } from '../../../shared/platform/config/config.ts'
import type { Form } from '../../../shared/platform/config/fields.ts'

export type Env = Record<string, string>

/** A valid master key. */
export const KEY = Buffer.alloc(32, 7).toString('base64')
export const CLUSTER = { REDIS_URL: 'redis://127.0.0.1:6379', MONGODB_URL: 'mongodb://127.0.0.1:27017' }

export const standalone = (env: Env = {}) => loadConfig(env, 'standalone')
export const cluster = (env: Env = {}) => loadConfig({ ...CLUSTER, ...env }, 'cluster')

/** The problems of a configuration; empty when it is valid. */
export function problems(env: Env, form: Form = 'standalone'): readonly string[] {
  try {
    loadConfig(env, form)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}
