import { FIELDS, type Field, type Form } from '../shared/platform/config/fields.ts'
import { fileVariable } from '../shared/platform/config/secret-settings.ts'
import { targetFields } from '../shared/platform/config/target-fields.ts'
import { ABOUT, USAGE } from './local-cluster/options.ts'

// Prints the usage of scripts/start or scripts/cluster and the table of all settings (D1.3c). Argument: start or cluster.

const WIDTH = 100
const NAME_WIDTH = 29

const HELP: Record<string, string> = {
  start:
    'usage: scripts/start [--help]\n\nInstalls what is missing and runs the standalone form, one process, on this machine.',
  cluster: `${USAGE}\n\n${ABOUT}`,
}

const SETTINGS = `Settings are environment variables. An empty one counts as unset, a wrong one stops the start.
A secret may come from a file instead, whose path is in NAME_FILE. With ENABLE_BASH or MCP_CONFIG
set the secret itself: programs of tools could read the file, and are not offered then.`

/** The settings by what they are about, in the order of the help. A setting stands in the first group that takes it. */
const GROUPS: readonly (readonly [title: string, RegExp])[] = [
  [
    'The first to know',
    /^(MODEL|MODEL_PROVIDER|MODEL_BASE_URL|MODEL_API_KEY|PORT|DATA_DIR|MASTER_KEY|API_TOKEN|OIDC_ISSUER|DURABILITY)$/,
  ],
  ['Models', /^(MODEL|FALLBACK_MODEL|SMALL_MODEL)/],
  ['Listeners and proxies', /^(HOST|PUBLISHED_|OPS_|TRUST_PROXY|ALLOWED_HOSTS|HTTPS_PROXY|NO_PROXY|ALLOW_PRIVATE_)/],
  ['Who may do what', /^(AUTH_MODE|OIDC_|TENANT_CLAIM|ADMIN_SCOPE|SCOPE_CLAIM|MASTER_KEY)/],
  ['What is served', /^(CORS_|RATE_LIMIT_|API_EXPLORER|CONSOLE|DIALECTS|KEEPALIVE_SECS)/],
  ['Tools', /^(TOOL_|PLAN_PERMISSIONS|ENABLE_BASH|SKILLS_DIR|MCP_|PERMISSION_|CLIENT_TOOL_|WORKSPACE_)/],
  ['Runs, sessions and customers', /^(RUN|SESSION|CUSTOMER_|MAX_TURNS)/],
  ['Flows and plans', /^(FLOWS_DIR|DISPATCH_STORE|PLAN|SCHEDULE_)/],
  ['The cluster and its stores', /^(REDIS_|MONGODB_|CLUSTER_NAME)/],
  ['Limits of the process', /^(TENANT_LIMITS|UPLOAD|DRAIN_SECS|LOG_LEVEL)/],
]

const rows: Field<unknown>[] = [targetFields('MODEL'), FIELDS, targetFields('FALLBACK_MODEL')].flatMap((table) =>
  Object.values<Field<unknown>>(table),
)
const groupOf = ({ name }: Field<unknown>) => GROUPS.findIndex(([, takes]) => takes.test(name))
const groups = GROUPS.map(([title], i) => {
  const own = rows.filter((row) => groupOf(row) === i)
  return `${title}\n\n${own.map(rendered).join('')}`
})
process.stdout.write(`${HELP[process.argv[2] ?? '']}\n\n${SETTINGS}\n\n${groups.join('\n')}`)

/** The name, then beside it the meaning and the default, wrapped. */
function rendered({ name, meaning, fallback, secrets }: Field<unknown>): string {
  const file = secrets ? ` Or in a file: ${fileVariable(name)}.` : ''
  const lines = wrapped(`${meaning}${file} ${defaultText(fallback)}`, WIDTH - NAME_WIDTH)
  return lines.map((line, i) => `${(i === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`).join('')
}

function defaultText(fallback: string | Record<Form, string> | undefined): string {
  if (fallback === undefined) return '[unset]'
  if (typeof fallback === 'string') return `[${fallback || 'empty'}]`
  return `[${fallback.standalone}; in the cluster form ${fallback.cluster}]`
}

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}
