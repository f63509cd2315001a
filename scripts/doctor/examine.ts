import { checkAccess } from './access.ts'
import { type Check, type Finding, type Patient, reasonOf } from './finding.ts'
import { checkIssuer, checkToken } from './issuer.ts'
import { checkMasterKey } from './keys.ts'
import { checkFolders, checkOpenFiles } from './machine.ts'
import { checkMcp } from './mcp.ts'
import { checkModels } from './models.ts'
import { checkMongo } from './mongo.ts'
import { checkStreaming, checkTrustedHops } from './public-url.ts'
import { checkClock, checkRedis } from './redis.ts'
import { checkWorkspaceStore } from './workspace-store.ts'

const CHECKS: Record<string, Check> = {
  redis: checkRedis,
  mongodb: checkMongo,
  clock: checkClock,
  'master key': checkMasterKey,
  models: checkModels,
  'mcp servers': checkMcp,
  issuer: checkIssuer,
  token: checkToken,
  access: checkAccess,
  'open files': checkOpenFiles,
  folders: checkFolders,
  'workspace store': checkWorkspaceStore,
  proxies: checkTrustedHops,
  streaming: checkStreaming,
}

/** Makes the checks that apply, says one line for each finding and for each check without one, and gives the number of findings. */
export async function examine(patient: Patient, say: (line: string) => void): Promise<number> {
  let count = 0
  for (const [name, check] of Object.entries(CHECKS)) {
    if (!applies(name, patient)) continue
    const findings = await check(patient).catch((cause: unknown) => [unexplained(cause)])
    for (const finding of findings) say(lineOf(name, finding))
    const faults = findings.filter((finding) => 'problem' in finding)
    if (faults.length === 0) say(`ok       ${name}`)
    count += faults.length
  }
  say(count === 0 ? 'No fault was found.' : `${count} ${count === 1 ? 'fault was' : 'faults were'} found.`)
  return count
}

/** The line for a finding. */
export const lineOf = (name: string, finding: Finding): string =>
  'note' in finding
    ? `note     ${name}: ${finding.note}.`
    : `PROBLEM  ${name}: ${finding.problem}. Cure: ${finding.cure}.`

/** The checks that apply: a standalone server has no Redis and no MongoDB, and some checks need an address. */
function applies(name: string, { isCluster, publicUrl, token, config }: Patient): boolean {
  if (['redis', 'mongodb', 'clock'].includes(name)) return isCluster
  if (['proxies', 'streaming'].includes(name)) return publicUrl !== undefined
  if (name === 'issuer') return config.oidcIssuer !== undefined
  if (name === 'workspace store') return config.workspaceStore !== undefined
  if (name === 'mcp servers') return config.mcpConfig !== undefined
  if (name === 'models') return config.model !== undefined
  return name !== 'token' || token !== undefined
}

function unexplained(cause: unknown): Finding {
  return { problem: `the check failed: ${reasonOf(cause)}`, cure: 'report it with this line' }
}
