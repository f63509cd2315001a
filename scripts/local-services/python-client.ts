import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheDir, DOWNLOAD_MS, ensurePip, reasonOf } from './wheel.ts'

const REQUIREMENTS = fileURLToPath(new URL('openapi-python-client.txt', import.meta.url))
const ABSENT = 'openapi-python-client could not be found: it needs Python 3.11 or newer with pip.'

const run = promisify(execFile)

/** Fetches the pinned generator of Python clients from PyPI, which all clones share. Returns its folder of packages. Throws with the remedy. */
export async function ensurePythonClient(say: (line: string) => void): Promise<string> {
  const found = await findPythonClient()
  if (found !== undefined) return found
  await ensurePip('openapi-python-client', say)
  say('Fetching openapi-python-client from PyPI (once for all clones) ...')
  const reason = await fetchPackages().then(() => undefined, reasonOf)
  const fetched = await findPythonClient()
  if (fetched === undefined) throw new Error(`${ABSENT} ${reason ?? ''}`.trim())
  return fetched
}

/** The folder of the fetched packages, for PYTHONPATH. Throws with the command that fetches them. */
export async function requirePythonClient(): Promise<string> {
  const found = await findPythonClient()
  if (found !== undefined) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure python-client\` fetches it.`)
}

async function findPythonClient(): Promise<string | undefined> {
  const dir = await packagesDir()
  return dir !== undefined && existsSync(dir) ? dir : undefined
}

/** Its name changes with the pinned versions and with Python's, since some of the packages are compiled. */
async function packagesDir(): Promise<string | undefined> {
  const tag = await run('python3', ['-c', 'import sys; print(sys.implementation.cache_tag)']).catch(() => undefined)
  if (tag === undefined) return undefined
  const pins = createHash('sha256')
    .update(await readFile(REQUIREMENTS))
    .digest('hex')
  return join(cacheDir(), `openapi-python-client-${pins.slice(0, 12)}-${tag.stdout.trim()}`)
}

/** Moves the packages to their folder in one step, since another process may do the same. Throws with pip's error. */
async function fetchPackages(): Promise<void> {
  const target = await packagesDir()
  if (target === undefined) throw new Error('There is no python3.')
  await mkdir(cacheDir(), { recursive: true })
  const dir = await mkdtemp(join(cacheDir(), '.fetch-'))
  try {
    const pinned = ['--no-deps', '--only-binary=:all:', '-r', REQUIREMENTS, '--target', join(dir, 'packages')]
    const args = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--no-warn-script-location',
      ...pinned,
    ]
    await run('python3', args, { timeout: DOWNLOAD_MS })
    await rename(join(dir, 'packages'), target)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
