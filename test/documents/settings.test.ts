import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { readConfig } from '../../scripts/local-cluster/options.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { FIELDS } from '../../shared/platform/config/fields.ts'
import { targetFields } from '../../shared/platform/config/target-fields.ts'
import { DOCUMENTS, type MarkdownFile } from './documents.ts'

type Recommended = { path: string; said: string; env: Record<string, string> }

const NAMES = new Set(
  [FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')].flatMap((table) =>
    Object.values(table).map(({ name }) => name),
  ),
)
/** Code in a line, a block of settings, the command that starts the product, and lines of a file of settings. */
const SAYINGS = /^```ini\n([^]*?)^```$|`([^`\n]+)`|^((?:[A-Z_]+=\S+ )+scripts\/(?:start|cluster).*)$|^([A-Z_]+=.*)$/gm
const SETTING = /(?:^|\s)([A-Z][A-Z_]+)=((?:\$\(.*?\)|\S)*)/g

/** What a document says to stop the start. */
const REFUSED = new Set(['AUTH_MODE=soft|enforced'])
/** Settings that the text beside this one names without a value. */
const BESIDE: Readonly<Record<string, Record<string, string>>> = {
  WORKSPACE_STORE: { WORKSPACE_STORE_ACCESS_KEY: '...', WORKSPACE_STORE_SECRET_KEY: '...' },
}

/** The environments that a document recommends: each has the settings that stand together. */
function recommendedIn({ path, text }: MarkdownFile): Recommended[] {
  return [...text.matchAll(SAYINGS)].flatMap(([, ...parts]) => {
    const said = parts.find((part) => part !== undefined) ?? ''
    const named = [...said.matchAll(SETTING)].filter(([, name = '']) => NAMES.has(name))
    if (named.length === 0 || REFUSED.has(said)) return []
    const set = named.map(([, name = '', value = '']) => [name, evaluated(value)] as const)
    return [{ path, said, env: { ...BESIDE[set[0]?.[0] ?? ''], ...Object.fromEntries(set) } }]
  })
}

/** What bash makes of a key such as `$(head -c 32 /dev/urandom | base64)`. */
const evaluated = (value: string): string =>
  value.replace(/\$\(head -c (\d+) \/dev\/urandom \| base64\)/, (_, size) =>
    randomBytes(Number(size)).toString('base64'),
  )

const recommended = DOCUMENTS.flatMap(recommendedIn)

describe('the settings that a document recommends', () => {
  it('are found in commands, in blocks, in files and in the text', () => {
    expect(recommended.map(({ said }) => said)).to.include.members([
      'DURABILITY=runs',
      'DURABILITY=runs scripts/cluster',
      'RATE_LIMIT_RPM=600 scripts/start',
      'MONGODB_URL=mongodb+srv://user:password@mongo.example.com/',
      'CORS_ORIGINS=https://app.example.com\nCORS_RESUME=true\n',
    ])
  })

  for (const [script, check] of [
    ['scripts/start', (env: Recommended['env']) => loadConfig(env, 'standalone')],
    ['scripts/cluster', readConfig],
  ] as const)
    it(`are accepted by ${script} as they stand there, with nothing but what it brings itself`, () => {
      const refused = recommended.flatMap(({ path, said, env }) => {
        try {
          check(env)
          return []
        } catch (cause) {
          return [`${path}: ${said}: ${String(cause)}`]
        }
      })
      expect(refused).to.deep.equal([])
    })
})
