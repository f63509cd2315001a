import { isUtf8 } from 'node:buffer'
import { open, readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { abortOnInterrupt, type Io } from '../io.ts'
import { sendFile } from './transfer.ts'

type Uploading = Pick<Cli, 'io' | 'target' | 'output'>

/** Keeps a file. */
export async function upload(file: string, cli: Uploading): Promise<Schema<'File'>> {
  const { signal, release } = abortOnInterrupt(cli.io)
  const path = `/files?name=${encodeURIComponent(basename(file))}`
  try {
    return JSON.parse(await sendFile({ path, file, signal }, cli)) as Schema<'File'>
  } finally {
    release()
  }
}

/** The files as a request attaches them. */
export async function uploadAll(files: readonly string[], cli: Uploading) {
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

/** Whether a file begins as UTF-8 without a NUL byte. The part that is read may end inside a character. */
export async function isText(path: string): Promise<boolean> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  const head = buffer.subarray(0, bytesRead)
  return !head.includes(0) && [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, Math.max(0, bytesRead - cut))))
}
