import { isUtf8 } from 'node:buffer'
import { access, open, readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { createFiles, type Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { abortOnInterrupt } from '../follow/interrupt.ts'
import type { Io } from '../io.ts'

/** Sends a file as it is read from the disk. */
export async function upload(file: string, { io, engine }: Pick<Cli, 'io' | 'engine'>): Promise<Schema<'File'>> {
  const path = resolve(io.cwd, file)
  await access(path)
  const { signal, release } = abortOnInterrupt(io)
  try {
    return await createFiles(await engine()).upload(path, { signal })
  } finally {
    release()
  }
}

/** The files as a request attaches them. */
export async function uploadAll(files: readonly string[], cli: Pick<Cli, 'io' | 'engine'>) {
  const attached: { file_id: string }[] = []
  for (const file of files) attached.push({ file_id: (await upload(file, cli)).file_id })
  return attached
}

/** The files within the request, so that nothing is kept. */
export async function inlineAll(files: readonly string[], { cwd }: Pick<Io, 'cwd'>) {
  const attached: { data: string; name: string }[] = []
  for (const file of files) attached.push({ data: await readFile(resolve(cwd, file), 'base64'), name: basename(file) })
  return attached
}

const HEAD_BYTES = 4 * 1024

/** Whether a file begins as UTF-8 without a NUL byte. The end of the beginning may cut a character. */
export async function isText(path: string): Promise<boolean> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  const head = buffer.subarray(0, bytesRead)
  return !head.includes(0) && [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, Math.max(0, bytesRead - cut))))
}
