// Tests files.ts and contents.ts, on SQLite and a folder.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { FILE_LIMITS, Files } from '../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { readAll, sha256Of } from '../../../shared/platform/objects/content.ts'
import { openDisk } from '../../../shared/platform/objects/disk.ts'
import type { Objects } from '../../../shared/platform/objects/port.ts'
import { listAll } from '../../support/s3.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'

const [ACME, OTHER] = [tenantId('acme:1'), tenantId('other')]

describe('the files of tenants', () => {
  const folder = useTempFolder({ perTest: true })
  const store = useTestStore({ perTest: true })
  let objects: Objects
  let nowMs: number
  let files: Files
  beforeEach(async () => {
    nowMs = Date.parse('2026-11-29T09:30:00Z')
    objects = await openDisk(join(folder.path, 'objects'))
    files = open()
  })

  const open = (limits = {}, used = objects) =>
    new Files(store.store, used, { limits: { ...FILE_LIMITS, ...limits }, now: () => nowMs })
  type Adding = { name?: string; tenant?: TenantId; to?: Files; retentionMs?: number }
  async function add(
    text: string | Uint8Array,
    { name = 'note.txt', tenant = ACME, to = files, ...more }: Adding = {},
  ) {
    const path = join(folder.path, 'upload')
    await writeFile(path, text)
    return to.add(tenant, { path, name, bytes: Buffer.byteLength(text), sha256: sha256Of(text), ...more })
  }
  const kept = async () => (await listAll(objects, '')).length
  const read = async ({ file_id }: FileRecord, tenant = ACME) => {
    const { body } = await files.open(tenant, file_id)
    return (await readAll(body, 1e6)).toString()
  }
  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('it should throw'),
      (cause: { kind: string; status: number }) => `${cause.kind} ${cause.status}`,
    )

  it('are read, listed, and deleted by the tenant that they belong to alone', async () => {
    const one = await add('one')
    nowMs += 1_000
    const two = await add('two')
    expect(await read(one)).to.equal('one')
    expect((await files.page(ACME, { limit: 10 })).map(({ file_id }) => file_id)).to.deep.equal([
      two.file_id,
      one.file_id,
    ])
    expect(await files.page(ACME, { after: [two.created_at, two.file_id], limit: 10 })).to.deep.equal([one])
    expect(await files.page(OTHER, { limit: 10 })).to.deep.equal([])
    for (const ask of [files.get(OTHER, one.file_id), files.open(OTHER, one.file_id), files.delete(OTHER, one.file_id)])
      expect(await refusal(ask)).to.equal('not_found 404')
    await files.delete(ACME, one.file_id)
    expect(await refusal(files.open(ACME, one.file_id))).to.equal('not_found 404')
    expect(await kept()).to.equal(1)
  })

  it('of the same bytes are stored once for a tenant, until the last one is deleted', async () => {
    const [one, two] = [await add('same'), await add('same', { name: 'b.txt' })]
    await add('same', { tenant: OTHER })
    expect(await kept()).to.equal(2)
    await files.delete(ACME, one.file_id)
    expect(await read(two)).to.equal('same')
    await files.delete(ACME, two.file_id)
    expect(await kept()).to.equal(1)
  })

  it('that are added and deleted at the same time keep their bytes as long as one is left', async () => {
    for (let round = 0; round < 5; round++) {
      const first = await add('raced')
      const [, second] = await Promise.all([files.delete(ACME, first.file_id), add('raced'), add('raced')])
      expect(await read(second)).to.equal('raced')
      for (const { file_id } of await files.page(ACME, { limit: 10 })) await files.delete(ACME, file_id)
      expect(await kept()).to.equal(0)
    }
  })

  it('are gone when they have expired, and the sweep deletes their bytes', async () => {
    const short = await add('short', { retentionMs: 60_000 })
    const long = await add('long')
    nowMs += 60_000
    expect(await refusal(files.get(ACME, short.file_id))).to.equal('not_found 404')
    expect(await files.page(ACME, { limit: 10 })).to.deep.equal([long])
    await files.sweep()
    expect(await kept()).to.equal(1)
    expect(await read(long)).to.equal('long')
  })

  it('that have expired and are not swept yet do not end a list before those that follow', async () => {
    const old = [await add('one'), await add('two')]
    nowMs += 1
    for (const text of ['a', 'b', 'c']) await add(text, { retentionMs: 60_000 })
    nowMs += 60_000
    const listed = await files.page(ACME, { limit: 2 })
    expect(listed.map(({ file_id }) => file_id)).to.have.members(old.map(({ file_id }) => file_id))
  })

  it('whose upload broke off leave bytes that the sweep deletes an hour later', async () => {
    const upload = open(
      {},
      {
        ...objects,
        write: async (key, ...rest) => (await objects.write(key, ...rest), Promise.reject(new Error('cut'))),
      },
    )
    await add('cut', { to: upload }).catch(() => {})
    await files.sweep()
    expect(await kept()).to.equal(1)
    const aged: Objects = {
      ...objects,
      async *list(prefix) {
        for await (const each of objects.list(prefix)) yield { ...each, ageMs: 3_600_000 }
      },
    }
    nowMs += 3_600_001
    const used = await add('used')
    await open({}, aged).sweep()
    expect([await kept(), await read(used)]).to.deep.equal([1, 'used'])
  })

  it('beyond the room of a tenant are refused with 413, and leave nothing', async () => {
    const small = open({ maxFiles: 2, maxBytes: 8 })
    await add('12345', { to: small })
    expect(await refusal(add('6789', { to: small }))).to.equal('invalid_request 413')
    await add('678', { to: small })
    expect(await refusal(add('9', { to: small }))).to.equal('invalid_request 413')
    expect(await kept()).to.equal(2)
    await add('9', { to: small, tenant: OTHER })
  })

  it('have the type that their bytes say; the name counts among texts alone', async () => {
    const zip = Buffer.from('504b0304140000000800', 'hex')
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex')
    const cases: [string | Buffer, string, string][] = [
      [png, 'a.txt', 'image/png'],
      [Buffer.concat([zip, Buffer.alloc(40)]), 'a.png', 'application/zip'],
      ['%PDF-1.7\n', 'a', 'application/pdf'],
      ['<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>', 'a.png', 'text/plain'],
      ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'a.svg', 'image/svg+xml'],
      ['a,b\n', 'a.CSV', 'text/csv'],
      ['{}', 'a.json', 'application/json'],
      ['plain ä', 'none', 'text/plain'],
      [`${'x'.repeat(8 * 1024 - 1)}ä`, 'cut.md', 'text/markdown'],
      [Buffer.from([0, 1, 2, 3]), 'a.txt', 'application/octet-stream'],
      [Buffer.from([0x61, 0xff, 0x62]), 'a.txt', 'application/octet-stream'],
    ]
    for (const [bytes, name, type] of cases) expect((await add(bytes, { name })).media_type, name).to.equal(type)
  })
})
