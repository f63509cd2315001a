import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../kernel/log.ts'
import type { Env } from '../../../platform/config/model.ts'
import type { ServerState, Tool, ToolOwner } from '../port.ts'
import type { DeliveredFiles } from '../workspace/deliver.ts'
import { type McpServerConfig, readMcpConfig, type Scope } from './config.ts'
import { McpConnection } from './connection.ts'
import { type InstanceBounds, Instances } from './instances.ts'
import { ListedServer } from './listed-server.ts'
import { OfferedTools, type ToolChange } from './offered-tools.ts'
import { createToolNames } from './tool-names.ts'

export type McpDeps = {
  /** Path of the MCP_CONFIG file (D1.3). */
  configFile: string
  /** The variables that the file may refer to. */
  variables: Env
  /** The guarded outgoing client, for servers over HTTP. */
  fetch: typeof globalThis.fetch
  /** Gets a line for each server or tool that is left out, and for each that becomes available again. */
  log: Pick<Log, 'info' | 'warn'>
  /** How long a server may take to start, and then to list its tools. */
  startTimeoutMs: number
  /** Whether servers over stdio may be started; called only if there are any. If not, they are left out. */
  mayStartPrograms?: () => Promise<boolean>
  /** How long to wait for the servers. A slower server's tools are added later. By default each server may use its start time. */
  waitMs?: number
  /** Keeps the files that a result contains. Left out: they are only named. */
  files?: DeliveredFiles | undefined
  /** The parent of the folders of servers over stdio. Left out: they work in the folder of this process. */
  folder?: string
  /** The scope of a server over stdio whose entry names none. */
  defaultScope?: Scope
  bounds?: InstanceBounds
  /** The first pause before a server that is down is tried again, and the least pause between two lists. */
  retryMs?: number
  /** The pause between two lists of a server that announces no changes. */
  listEveryMs?: number
  /** The longest silence within a call; each progress notification starts it again. */
  callTimeoutMs?: number
}

export type McpTools = {
  tools: readonly Tool[]
  /** Sets the function that is called when a server becomes ready or its tools have changed. Call it once. */
  onChange(apply: (change: ToolChange) => Promise<void> | void): void
  /** Resolves, after `onChange` was called, when each server has listed its tools or failed to. `undefined`: there are no servers. */
  readonly listed: Promise<void> | undefined
  /** The present state of each server. */
  servers(): { name: string; state: ServerState; instructions?: string }[]
  /** Ends the servers of a session, plan or run that has ended. */
  release(owner: ToolOwner): void
  close(): Promise<void>
}

const CALL_TIMEOUT_MS = 60_000
const RETRY_MS = 5_000
const LIST_EVERY_MS = 60_000
const BOUNDS: InstanceBounds = { max: 64, maxPerTenant: 64, idleMs: 1_800_000, maxMemoryBytes: 2 * 1024 ** 3 }

/**
 * Offers the tools of the servers of MCP_CONFIG as `mcp__<server>__<tool>` (D5.1). A server that cannot be reached is left out, and tried
 * again. Throws `invalid_request` for a malformed file; the message names the file and its problems.
 */
export async function openMcpServers(deps: McpDeps): Promise<McpTools> {
  const { configFile, variables, log, waitMs } = deps
  const onUnknown = (problem: string) => log.warn(problem)
  const configs = await withoutPrograms(await readMcpConfig(configFile, variables, onUnknown), deps)
  const closing = new AbortController()
  const listed = Promise.withResolvers<void>()
  const { servers, instances } = createServers(configs, deps, closing.signal)
  const listing = servers.map((server) => server.begin())
  const all = Promise.all(listing)
  await (waitMs === undefined ? all : Promise.race([all, sleep(waitMs, undefined, { signal: closing.signal })]))
  const late = servers.filter(({ state }) => state === 'starting')
  for (const { name } of late)
    log.info(`The MCP server ${name} is starting. Its tools are offered when it has listed them.`)
  const first = await Promise.all(listing.filter((_, i) => servers[i]?.state !== 'starting'))
  return {
    tools: first.flatMap((change) => change?.tools ?? []),
    onChange(apply) {
      const following = servers.map(async (server, i) => {
        const change = await listing[i]
        if (change && late.includes(server) && !closing.signal.aborted) await apply(change)
        void server.follow(change, apply)
      })
      listed.resolve(Promise.all(following).then(() => {}))
    },
    listed: listed.promise,
    servers: () =>
      servers.map(({ name, state, instructions }) => ({ name, state, ...(instructions && { instructions }) })),
    release: (owner) => instances.release(owner),
    async close() {
      closing.abort()
      await instances.close()
      await all
    },
  }
}

function createServers(configs: readonly McpServerConfig[], deps: McpDeps, signal: AbortSignal) {
  const { fetch, log, startTimeoutMs, folder, files, defaultScope = 'shared', bounds = BOUNDS } = deps
  const { callTimeoutMs = CALL_TIMEOUT_MS, retryMs = RETRY_MS, listEveryMs = LIST_EVERY_MS } = deps
  const onProblem = (problem: string) => log.warn(problem)
  const nameOf = createToolNames(configs.map(({ name }) => name))
  const byConfig = new Map<McpServerConfig, ListedServer>()
  const open = (server: McpServerConfig, ownFolder: string | undefined) => {
    const onConnected = () => byConfig.get(server)?.connected()
    const onToolsChanged = () => byConfig.get(server)?.changed()
    return new McpConnection(server, {
      fetch,
      folder: ownFolder,
      startTimeoutMs,
      onProblem,
      onConnected,
      onToolsChanged,
    })
  }
  const instances = new Instances({ bounds, folder, defaultScope, open })
  for (const config of configs) {
    const { name, timeoutMs = callTimeoutMs } = config
    const onUnknownTool = () => byConfig.get(config)?.changed()
    const options = { nameOf: (tool: string) => nameOf(name, tool), callTimeoutMs: timeoutMs, onUnknownTool, onProblem }
    const offered = new OfferedTools(config, { ...options, instances, files })
    byConfig.set(config, new ListedServer(config, { instances, offered, log, retryMs, listEveryMs, signal }))
  }
  return { servers: [...byConfig.values()], instances }
}

async function withoutPrograms(
  configs: readonly McpServerConfig[],
  { mayStartPrograms = async () => true }: McpDeps,
): Promise<readonly McpServerConfig[]> {
  const remote = configs.filter((config) => 'url' in config)
  return remote.length === configs.length || (await mayStartPrograms()) ? configs : remote
}
