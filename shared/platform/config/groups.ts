import type { Config } from './config.ts'

/**
 * The settings in groups, one for each part of a process. A part gets only its own group, because the rest contains secrets of other parts;
 * a part that opens further parts passes on their groups. Only the tools have all `variables`: MCP servers' files refer to them, and the
 * tools look for secrets that their programs could read.
 */
export const groupSettings = (config: Config) => ({
  process: processIn(config),
  ops: { ...redisIn(config), ...opsIn(config) },
  redis: redisIn(config),
  store: { ...storeIn(config), ...workspacesIn(config) },
  tenants: { keys: keysIn(config), limits: limitsIn(config), ...egressIn(config), ...linksIn(config) },
  tools: toolsIn(config),
  worker: {
    tools: toolsIn(config),
    models: modelsIn(config),
    limits: workerLimitsIn(config),
    workspaces: workspacesIn(config),
  },
  executor: { models: modelsIn(config), workspaces: workspacesIn(config), ...executorIn(config) },
  plans: plansIn(config),
  flows: flowsIn(config),
  http: httpIn(config),
})

export type Settings = ReturnType<typeof groupSettings>

/** Makes a function that returns only these settings of the configuration. */
const pick =
  <Name extends keyof Config>(...names: readonly Name[]) =>
  (config: Pick<Config, Name>): Pick<Config, Name> =>
    Object.fromEntries(names.map((name) => [name, config[name]])) as Pick<Config, Name>

const processIn = pick('dataDir', 'drainMs', 'runsPerWorker')
const redisIn = pick('redisUrl', 'redisSentinels', 'redisCluster', 'clusterName')
const opsIn = pick('host', 'opsPort', 'opsToken', 'allowedHosts')
const storeIn = pick(
  'dataDir',
  'mongodbUrl',
  'mongodbDb',
  'plansPerTenant',
  'planBytesPerTenant',
  'durability',
  'sessionIdleMs',
  'runResumeMs',
)
const keysIn = pick('masterKey', 'masterKeysPrevious', 'dataDir', 'isBashEnabled', 'mcpConfig')
const egressIn = pick('allowsPrivateUrls')
const linksIn = pick('consoleUrl')
const plansIn = pick('hasPlanQueue', 'scheduleLeastSecs')
const flowsIn = pick('flowsDir', 'hasDispatchStore')
const modelsIn = pick('model', 'fallback', 'smallModel', 'modelPrices', 'httpsProxy', 'noProxy')

const toolsIn = pick(
  'toolPermissions',
  'planPermissions',
  'workspaceQuotaBytes',
  'isBashEnabled',
  'mcpConfig',
  'mcpStartMs',
  'mcpProcesses',
  'mcpIdleMs',
  'mcpMemoryBytes',
  'oidcIssuer',
  'tenantShare',
  'variables',
  'dataDir',
  'skillsDir',
  'allowsPrivateUrls',
)

const workerLimitsIn = pick(
  'runsPerWorker',
  'runsPerTenant',
  'runResumeMs',
  'sessionsPerWorker',
  'sessionsPerTenant',
  'sessionMemoryBytes',
  'tenantShare',
  'sessionIdleMs',
  'permissionTimeoutMs',
  'clientToolTimeoutMs',
  'maxTurns',
  'customerEngines',
  'customerIdleMs',
  'customerHistoryEntries',
  'customerHistoryChars',
)

const workspacesIn = pick(
  'workspaceDir',
  'workspaceQuotaBytes',
  'workspaceStore',
  'workspaceStoreEndpoint',
  'workspaceStoreRegion',
  'workspaceStoreAccessKey',
  'workspaceStoreSecretKey',
)

const executorIn = pick(
  'planPermissions',
  'runsPerWorker',
  'runsPerTenant',
  'runResumeMs',
  'maxTurns',
  'modelPrices',
  'hasPlanQueue',
  'hasDispatchStore',
  'scheduleLeastSecs',
)

const listenIn = pick('host', 'port', 'allowedHosts', 'trustProxy')
const corsIn = pick('corsOrigins', 'corsResume', 'corsAllowHeaders', 'corsExposeHeaders')
const accessIn = pick('host', 'publishedAddress', 'apiToken', 'oidcIssuer')
const rateLimitsIn = pick('rateLimitRpm', 'rateLimitStore', 'oidcIssuer')
const uploadsIn = pick('dataDir', 'tenantShare', 'uploadsPerGateway', 'uploadSpoolBytes', 'allowsPrivateUrls')
const factsIn = pick('permissionTimeoutMs', 'clientToolTimeoutMs', 'runResumeMs', 'rateLimitRpm')
const streamsIn = pick('keepaliveMs')
const consoleIn = pick('hasConsole', 'consoleClientId', 'consoleScope', 'consoleOrigins', 'oidcIssuer', 'oidcAudience')
const appIn = pick('hasExplorer', 'adminScope', 'tenantShare', 'dialects')

const identifyIn = pick(
  'apiToken',
  'oidcIssuer',
  'oidcAudience',
  'oidcJwksUri',
  'authMode',
  'tenantClaim',
  'adminScope',
  'scopeClaim',
)

/** The limits that the operator sets for tenants, and the models whose prices they need: their names only. */
const limitsIn = ({ tenantLimits, modelPrices, model, fallback }: Config) => ({
  tenantLimits,
  modelPrices,
  serverModels: [model, fallback].flatMap((each) => (each ? [{ type: each.provider, model: each.model }] : [])),
})

const httpIn = (config: Config) => ({
  listen: listenIn(config),
  access: accessIn(config),
  cors: corsIn(config),
  identify: identifyIn(config),
  rateLimits: { ...rateLimitsIn(config), redis: redisIn(config) },
  uploads: uploadsIn(config),
  streams: streamsIn(config),
  console: consoleIn(config),
  facts: { ...factsIn(config), model: config.model?.model ?? null },
  ...appIn(config),
})
