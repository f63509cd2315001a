import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'
import { DEFAULT_TENANT, parseTenant, type TenantId } from '../../kernel/tenant.ts'
import type { FlowLibrary } from './library.ts'
import type { Flow } from './port.ts'

const FILE = /\.ya?ml$/
const MAX_FILES = 1_000
const MAX_BYTES = 2 * 1024 * 1024

/**
 * Stores the definitions in FLOWS_DIR as drafts (D1.3): `*.yaml` and `*.yml` files with `name`, the fields of a definition, and
 * `tenant` (without it `t_default`). A definition that equals the flow's newest one changes nothing. `problems` names each file that
 * was not loaded, and the reason.
 */
export async function loadFlows(
  dir: string,
  library: Pick<FlowLibrary, 'putIfChanged'>,
): Promise<{ flows: number; problems: string[] }> {
  const files = await filesIn(dir)
  if (!files) return { flows: 0, problems: [`FLOWS_DIR ${dir} is not a folder that can be read: no flow is loaded`] }
  const problems = await folderProblems(dir)
  const loaded = new Map<string, string>()
  for (const file of files.slice(0, MAX_FILES)) {
    try {
      const flow = await readFlow(join(dir, file))
      const earlier = loaded.get(flow.id)
      if (earlier !== undefined) throw new WrongFile(`${earlier} has the same flow`)
      loaded.set(flow.id, file)
      await library.putIfChanged(flow.tenant, flow.name, flow.body)
    } catch (cause) {
      problems.push(`the flow in ${file} is not loaded: ${reasonOf(cause)}`)
    }
  }
  const left = files.length - MAX_FILES
  if (left > 0) problems.push(`FLOWS_DIR ${dir} has more than ${MAX_FILES} files: the last ${left} are not loaded`)
  return { flows: loaded.size, problems }
}

/** The flow in the format of FLOWS_DIR, without `tenant`. */
export async function toYaml({ name, definition }: Flow): Promise<string> {
  const { stringify } = await import('yaml')
  return stringify({ name, ...definition }, { lineWidth: 0, aliasDuplicateObjects: false })
}

class WrongFile extends Error {}

/** The text of any other error is not shown. */
function reasonOf(cause: unknown): string {
  if (cause instanceof WrongFile) return cause.message
  if (!(cause instanceof AppError)) return 'it cannot be read'
  return cause.param === undefined ? cause.message : `${cause.message} (at ${cause.param || '/'})`
}

async function filesIn(dir: string): Promise<string[] | undefined> {
  try {
    return (await readdir(dir)).filter((name) => FILE.test(name) && !name.startsWith('.')).sort()
  } catch {
    return undefined
  }
}

/** Reports the folders in `dir`, because someone may expect flows in them. Folders of a mounted ConfigMap, which begin with a dot, are skipped. */
async function folderProblems(dir: string): Promise<string[]> {
  const names = (await readdir(dir)).filter((name) => !FILE.test(name) && !name.startsWith('.')).sort()
  const stats = await Promise.all(names.map((name) => stat(join(dir, name)).catch(() => undefined)))
  const folders = names.filter((_, index) => stats[index]?.isDirectory() === true)
  return folders.map((name) => `the folder ${name} in FLOWS_DIR is not read: put its flows directly into FLOWS_DIR`)
}

async function readFlow(path: string): Promise<{ id: string; tenant: TenantId; name: string; body: JsonObject }> {
  const { tenant: owner = DEFAULT_TENANT, ...body } = await readMapping(path)
  const tenant = parseTenant(owner)
  if (!tenant) throw new WrongFile('its tenant must be 1 to 128 of the characters A-Z a-z 0-9 . _ : -')
  const { name } = body
  if (typeof name !== 'string') throw new WrongFile('its name is missing')
  return { id: `${tenant} ${name}`, tenant, name, body }
}

/** Values are converted to JSON: those that JSON cannot express, such as `.nan`, become null. */
async function readMapping(path: string): Promise<JsonObject> {
  const stats = await stat(path)
  if (!stats.isFile()) throw new WrongFile('it is not a file')
  if (stats.size > MAX_BYTES) throw new WrongFile(`it is larger than ${MAX_BYTES} bytes`)
  const value: unknown = JSON.parse(JSON.stringify(await parseYaml(await readFile(path, 'utf8'))) ?? 'null')
  if (!isJsonObject(value)) throw new WrongFile('it is not a YAML mapping')
  return value
}

async function parseYaml(text: string): Promise<unknown> {
  const { parse } = await import('yaml')
  try {
    return parse(text, { maxAliasCount: 100, logLevel: 'error' })
  } catch {
    throw new WrongFile('it is not valid YAML')
  }
}
