import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { getBody } from '../connect/post-form.ts'
import { upload } from '../connect/upload.ts'
import { abortOnInterrupt } from '../follow/interrupt.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { plainJson, plainLine } from '../text/plain.ts'

export function defineFiles(command: Command, cli: Cli): void {
  addListOptions(command.command('ls').description('the files')).action((options: ListOptions) => list(options, cli))
  command
    .command('add <file...>')
    .description('keep files, and print their ids')
    .option('--json', 'print what the server says of them')
    .action(async (files: string[], { json }: { json?: boolean }) => {
      for (const file of files) {
        const kept = await upload(file, cli)
        cli.output.out(json ? `${plainJson(kept)}\n` : `${kept.file_id}\n`)
      }
    })
  command
    .command('get <id> <file>')
    .description('write the bytes of a file to the disk')
    .action((id: string, file: string) => get(id, file, cli))
  command
    .command('rm <id...>')
    .description('delete files')
    .action(async (ids: string[]) => {
      const { raw } = await cli.engine()
      for (const file_id of ids) {
        await raw.delete('/files/{file_id}', { path: { file_id } })
        cli.output.out(`${plainLine(file_id)} deleted\n`)
      }
    })
}

/** An existing file on the disk is left alone. */
async function get(id: string, file: string, { io, target, output }: Cli): Promise<void> {
  const { signal, release } = abortOnInterrupt(io)
  try {
    const body = await getBody(`/files/${encodeURIComponent(id)}/content`, signal, { io, target })
    const to = createWriteStream(resolve(io.cwd, file), { flags: 'wx', mode: 0o600 })
    await pipeline(body ? Readable.fromWeb(body) : [], to, { signal })
    output.err(`${plainLine(file)} written\n`)
  } finally {
    release()
  }
}

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const { files } = await raw.get('/files', { query: { limit: Math.min(options.limit, 100) } })
  printList<Schema<'File'>>(files, options, cli, {
    id: ({ file_id: id }) => id,
    nothing: 'there are no files',
    columns: [
      { title: 'ID', value: ({ file_id: id }) => id },
      { title: 'NAME', value: ({ name }) => name, canShrink: true },
      { title: 'TYPE', value: ({ media_type: type }) => type },
      { title: 'BYTES', value: ({ bytes }) => String(bytes), isNumber: true },
      { title: 'EXPIRES', value: ({ expires_at: at }) => at },
    ],
  })
}
