import { createRequire } from 'node:module'
import type { Agent, Dispatcher } from 'undici'
import { createGuardedConnector } from '../../platform/net/guarded-connector.ts'
import type { ConnectionGuard } from '../../platform/net/port.ts'
import type { HttpsProxy } from './port.ts'

/** How long an idle connection stays in the pool; the server's own keep-alive timeout is used when it is shorter. */
const KEEP_ALIVE_MS = 30_000

/** A connection reads at most 64 KiB more than this before its bytes are read here. */
const BUFFERED_BYTES = 16 * 1024

export type ConnectionOptions = { connectMs: number; guard?: ConnectionGuard; proxy?: HttpsProxy | undefined }

const load = createRequire(import.meta.url)

/**
 * Opens a connection pool. It enforces only the limit for connecting; `CallWatch` enforces the others. Call it for the
 * first request: it loads the agent.
 */
export function openConnections({ connectMs, guard, proxy }: ConnectionOptions): Dispatcher {
  const limits = { timeout: connectMs, highWaterMark: BUFFERED_BYTES }
  const connect = guard ? createGuardedConnector(guard, limits) : limits
  const pool = { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0, allowH2: false, connect }
  // Loading the whole package takes 60 ms and 25 MiB, its agent 22 ms and 11 MiB.
  if (!proxy) return new (load('undici/lib/dispatcher/agent.js') as typeof Agent)(pool)
  const { EnvHttpProxyAgent } = load('undici') as typeof import('undici')
  // Every option is given: the proxy agent would read missing ones from the environment.
  return new EnvHttpProxyAgent({ ...pool, httpsProxy: proxy.url, httpProxy: '', noProxy: proxy.except ?? '' })
}
