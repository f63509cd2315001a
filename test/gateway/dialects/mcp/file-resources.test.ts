import { join } from 'node:path'
import { ProtocolError, ResourceNotFoundError } from '@modelcontextprotocol/server'
import { expect } from 'chai'
import { linkTo, readFile } from '../../../../services/gateway/dialects/mcp/file-resources.ts'
import { Files } from '../../../../shared/agent/files/files.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { sha256Of } from '../../../../shared/platform/objects/content.ts'
import { openDisk } from '../../../../shared/platform/objects/disk.ts'
import { useTempFolder } from '../../../support/temp-folder.ts'
import { tenantId } from '../../../support/tenant.ts'
import { useTestStore } from '../../../support/test-store.ts'

describe('D50.6: the files of a tenant as resources of MCP', () => {
  const folder = useTempFolder()
  const store = useTestStore()
  let files: Files
  before(async () => {
    files = new Files(store.store, await openDisk(join(folder.path, 'objects')))
  })

  const add = (name: string, content: Buffer) =>
    files.add(DEFAULT_TENANT, { name, content, bytes: content.length, sha256: sha256Of(content) })
  const refusalOf = (uri: string, tenant = DEFAULT_TENANT) =>
    readFile(files, tenant, uri).catch((cause: unknown) => cause)

  it('a link says what the file is, and is read as text where it is one, else in base64', async () => {
    const note = await add('note.md', Buffer.from('# Hé'))
    const link = linkTo({ ...note, title: 'The note' })
    const { mimeType, uri } = link
    expect(link).to.include({
      type: 'resource_link',
      name: 'note.md',
      title: 'The note',
      mimeType: 'text/markdown',
      size: 5,
    })
    expect(await readFile(files, DEFAULT_TENANT, uri)).to.deep.equal({ contents: [{ uri, mimeType, text: '# Hé' }] })
    const late = Buffer.concat([Buffer.alloc(10_000, 'x'), Buffer.from([0xff])]) // What is no text is found behind the first bytes alone.
    for (const [bytes, type] of [
      [Buffer.from('%PDF-1.4'), 'application/pdf'],
      [late, 'text/plain'],
    ] as const) {
      const { uri: other } = linkTo(await add('plan', bytes))
      const { contents } = await readFile(files, DEFAULT_TENANT, other)
      expect(contents).to.deep.equal([{ uri: other, mimeType: type, blob: bytes.toString('base64') }])
    }
  })

  it('a file of another tenant is answered like an unknown one, and so is what is no address of a file', async () => {
    const { uri } = linkTo(await add('secret.txt', Buffer.from('mine')))
    const unknown = uri.replace(/\w{8}$/, '00000000')
    for (const refusal of [
      await refusalOf(uri, tenantId('other')),
      await refusalOf(unknown),
      await refusalOf('file:///etc/passwd'),
      await refusalOf(`${uri}/../../x`),
    ])
      expect(refusal).to.be.instanceOf(ResourceNotFoundError)
  })

  it('a file above 10 MB is refused before a byte of it is read, and the refusal says how to get it', async () => {
    const record = await add('big', Buffer.from('x'))
    const large = {
      get: async () => ({ ...record, bytes: 10 * 2 ** 20 + 1 }),
      open: () => expect.fail('it was opened'),
    }
    const refusal = await readFile(large as unknown as Files, DEFAULT_TENANT, linkTo(record).uri).catch(
      (cause: unknown) => cause,
    )
    expect(refusal)
      .to.be.instanceOf(ProtocolError)
      .with.property('message')
      .that.includes(`GET /files/${record.file_id}/content`)
  })
})
