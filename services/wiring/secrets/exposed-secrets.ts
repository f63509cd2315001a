import { readdir, readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../../../shared/platform/config/groups.ts'
import { fileVariable, SECRET_SETTINGS } from '../../../shared/platform/config/secret-settings.ts'
import { KEPT_KEY_FILE } from '../../../shared/tenancy/secrets/kept-key.ts'

type SecretSettings = Pick<Settings['tools'], 'variables' | 'dataDir' | 'mcpConfig'>

/** The texts that are searched to find a setting's secret. */
type Wanted = { name: string; entry: string; parts: readonly string[] }

/** A shorter secret is found as `NAME=value` only: it occurs in ordinary text. */
const MIN_PART_CHARS = 8

/** Another of our processes may just be starting; it hides its settings within this time. */
const SETTLE_MS = 3_000
const LOOK_EVERY_MS = 250

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * Reads all that a tool's program could read, since that runs as the same user: the environment and arguments of every process, and the files
 * that may contain secrets. Returns a phrase for each setting and place, such as `MASTER_KEY in the environment of process 7 (sh)`.
 */
export async function findExposedSecrets(config: SecretSettings): Promise<string[]> {
  const wanted = wantedOf(config.variables)
  const inFiles = await searchFiles(config, wanted)
  if (wanted.length === 0) return inFiles
  const deadline = performance.now() + SETTLE_MS
  for (;;) {
    const inProcesses = await searchProcesses(wanted)
    if (inProcesses.length === 0 || performance.now() > deadline) return [...inProcesses, ...inFiles]
    await sleep(LOOK_EVERY_MS)
  }
}

function wantedOf(env: SecretSettings['variables']): Wanted[] {
  return SECRET_SETTINGS.flatMap(({ name, parts: partsOf }) => {
    const raw = env[name] ?? ''
    const parts = raw === '' ? [] : partsOf(raw)
    if (parts.length === 0) return []
    return [{ name, entry: `${name}=${raw}`, parts: parts.filter(({ length }) => length >= MIN_PART_CHARS) }]
  })
}

/** Processes of other users cannot be read, and a process may end meanwhile. */
async function searchProcesses(wanted: readonly Wanted[]): Promise<string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const found: string[] = []
  for (const pid of pids) {
    const [environ, cmdline] = await Promise.all([textOf(`/proc/${pid}/environ`), textOf(`/proc/${pid}/cmdline`)])
    const inEnviron = namesIn(environ?.split('\0'), wanted)
    const inArguments = namesIn(cmdline?.split('\0'), wanted)
    if (inEnviron.length + inArguments.length === 0) continue
    const process = `process ${pid} (${(await textOf(`/proc/${pid}/comm`))?.trim() ?? 'ended'})`
    if (inEnviron.length > 0) found.push(`${inEnviron.join(', ')} in the environment of ${process}`)
    if (inArguments.length > 0) found.push(`${inArguments.join(', ')} in the arguments of ${process}`)
  }
  return found
}

async function searchFiles({ variables, dataDir, mcpConfig }: SecretSettings, wanted: readonly Wanted[]) {
  const own = SECRET_SETTINGS.map(({ name }) => ({ name, path: variables[fileVariable(name)] ?? '' }))
  const kept = { name: 'a master key', path: join(dataDir, KEPT_KEY_FILE) }
  const found = await Promise.all(
    [...own, kept].map(async ({ name, path }) =>
      path !== '' && (await textOf(path)) ? [`${name} in the file ${path}`] : [],
    ),
  )
  const shared = [
    resolve('.env'),
    join(ROOT, '.env'),
    join(ROOT, 'deploy/.env'),
    ...(mcpConfig === undefined ? [] : [mcpConfig]),
  ]
  for (const path of new Set(shared)) {
    const names = namesIn((await textOf(path))?.split('\n'), wanted)
    if (names.length > 0) found.push([`${names.join(', ')} in the file ${path}`])
  }
  return found.flat()
}

const namesIn = (texts: readonly string[] = [], wanted: readonly Wanted[]): string[] =>
  wanted
    .filter(({ entry, parts }) => texts.some((text) => text === entry || parts.some((part) => text.includes(part))))
    .map(({ name }) => name)

/** `undefined` for a file that this user cannot read, and for anything but a regular file: reading a pipe may never end. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isFile() ? await readFile(path, 'utf8') : undefined
  } catch {
    return undefined
  }
}
