import { randomBytes } from 'node:crypto'
import { FIELDS, type Field } from '../../shared/platform/config/fields.ts'
import { SECRET_SETTINGS } from '../../shared/platform/config/secret-settings.ts'
import { targetFields } from '../../shared/platform/config/target-fields.ts'
import { InvalidValue } from '../../shared/platform/config/values.ts'

export type Canaries = {
  /** A value for each setting that holds a secret. */
  settings: Record<string, string>
  /** A shell command that prints the place of each canary that it can read, then `searched N processes`. It holds none itself. */
  search(folders: readonly string[]): string
  /** The settings whose canaries occur in a text. */
  namesIn(text: string): string[]
}

type Canary = { raw: string; found: string }

/** The forms of the secrets, each with a canary: the first that a setting takes, and whose secret part has the canary, is used. */
const FORMS: readonly ((id: string) => Canary)[] = [
  (id) => ({ raw: id, found: id }),
  (id) => withBase64(Buffer.from(id.slice(0, 32))),
  (id) => ({ raw: `redis://:${id}@127.0.0.1:6379`, found: id }),
  (id) => ({ raw: `mongodb://canary:${id}@127.0.0.1:27017`, found: id }),
  (id) => ({ raw: `http://canary:${id}@127.0.0.1:3128`, found: id }),
  (id) => ({ raw: `http://127.0.0.1:9/v1?key=${id}`, found: id }),
  // The name and the beginning of the value are written with escapes, so that the text has neither.
  (id) => ({ raw: `{"headers":{"\\u0078-key":"\\u0063anary-${id}"}}`, found: id }),
]

function withBase64(bytes: Buffer): Canary {
  const raw = bytes.toString('base64')
  return { raw, found: raw.slice(0, 40) }
}

const TABLES = [FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')]
const PARSERS = new Map(
  TABLES.flatMap((table) => Object.values<Field<unknown>>(table)).map((each) => [each.name, each]),
)

/** Makes a canary for every setting in the tables that holds a secret. Throws for one that takes none of the forms. */
export function createCanaries(): Canaries {
  const canaries = SECRET_SETTINGS.map(({ name }) => ({ name, ...canaryFor(name) }))
  const pattern = canaries.map(({ found }) => `[${found[0]}]${found.slice(1)}`).join('|')
  const grep = `LC_ALL=C grep -aoHsE '${pattern}'`
  return {
    settings: Object.fromEntries(canaries.map(({ name, raw }) => [name, raw])),
    search: (folders) =>
      `${grep} /proc/[0-9]*/environ /proc/[0-9]*/cmdline; ${grep} -r --exclude-dir=node_modules ${folders.join(' ')}; echo searched $(ls -d /proc/[0-9]* | wc -l) processes`,
    namesIn: (text) => canaries.filter(({ found }) => text.includes(found)).map(({ name }) => name),
  }
}

function canaryFor(name: string): Canary {
  const id = randomBytes(20).toString('hex')
  const field = PARSERS.get(name)
  if (!field) return { raw: `x-canary=${id}`, found: id } // The headers of OpenTelemetry and keys of providers, which take any text.
  for (const form of FORMS) {
    const canary = form(id)
    const isFit = isTaken(field, canary.raw) && field.secrets?.(canary.raw).some((part) => part.includes(canary.found))
    if (isFit) return canary
  }
  throw new Error(`no canary has a form that ${name} takes: add one to FORMS`)
}

const isTaken = ({ parse }: Field<unknown>, raw: string): boolean => !(parse(raw) instanceof InvalidValue)
