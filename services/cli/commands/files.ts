import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { AgentEngine, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { getBody } from '../connect/transfer.ts'
import { upload } from '../connect/upload.ts'
import { abortOnInterrupt } from '../io.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { resolveId } from '../resolve-id.ts'
import { plainJson, plainLine } from '../text/plain.ts'

export function defineFiles(command: Command, cli: Cli): void {
  addListOptions(
    command.command('ls').argument('[id]', 'a run or a session').description('the files, or those of a workspace'),
  ).action((id: string | undefined, options: ListOptions) =>
    id === undefined ? list(options, cli) : listWorkspace(id, options, cli),
  )
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
    .option('--path <path>', 'the file of that path in the workspace of the run or session that is named')
    .action((id: string, file: string, { path }: { path?: string }) => get({ id, path, file }, cli))
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

type Wanted = { id: string; path: string | undefined; file: string }

/** An existing file on the disk is left alone. */
async function get({ id, path, file }: Wanted, { io, target, output, engine }: Cli): Promise<void> {
  const from =
    path === undefined
      ? `/files/${encodeURIComponent(id)}/content`
      : `${await workspaceOf(id, await engine())}/content?path=${encodeURIComponent(path)}`
  const { signal, release } = abortOnInterrupt(io)
  try {
    const body = await getBody(from, signal, { io, target })
    const to = createWriteStream(resolve(io.cwd, file), { flags: 'wx', mode: 0o600 })
    await pipeline(body ? Readable.fromWeb(body) : [], to, { signal })
    output.err(`${plainLine(file)} written\n`)
  } finally {
    release()
  }
}

async function workspaceOf(text: string, client: AgentEngine): Promise<string> {
  const { kind, id } = await resolveId(client, text, ['run', 'session'])
  return `/${kind}s/${encodeURIComponent(id)}/files`
}

async function listWorkspace(text: string, options: ListOptions, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const query = { limit: Math.min(options.limit, 200) }
  const answer = await client.raw.request('GET', await workspaceOf(text, client), { query })
  printList((answer as Schema<'ListWorkspaceFilesResponse'>).files, options, cli, {
    id: ({ path }) => path,
    nothing: 'no file lies there',
    columns: [
      { title: 'PATH', value: ({ path }) => plainLine(path), canShrink: true },
      { title: 'BYTES', value: ({ bytes }) => String(bytes), isNumber: true },
      { title: 'CHANGED', value: ({ modified_at: at }) => at, isMinor: true },
      { title: 'BY', value: ({ changed_by: by }) => by?.run_id ?? '', isId: true, isMinor: true },
    ],
  })
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
      { title: 'TYPE', value: ({ media_type: type }) => type, isMinor: true },
      { title: 'BYTES', value: ({ bytes }) => String(bytes), isNumber: true },
      { title: 'EXPIRES', value: ({ expires_at: at }) => at, isMinor: true },
    ],
  })
}
