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

const DAY_MS = 24 * 3_600_000
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

  const open = (limits = {}, retentionDays = async () => 30) =>
    new Files(store.store, objects, { limits: { ...FILE_LIMITS, ...limits }, retentionDays, now: () => nowMs })
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
  async function* parts(...texts: string[]) {
    for (const text of texts) yield Buffer.from(text)
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

  it('D43.3: are kept for as many days as their tenant says, or less', async () => {
    const strict = open({}, async () => 2)
    const days = ({ created_at, expires_at }: FileRecord) => (Date.parse(expires_at) - Date.parse(created_at)) / DAY_MS
    const added = [await add('a'), await add('b', { to: strict })]
    added.push(
      await add('c', { to: strict, retentionMs: DAY_MS / 2 }),
      await add('d', { to: strict, retentionMs: 9 * DAY_MS }),
    )
    expect(added.map(days)).to.deep.equal([30, 2, 0.5, 2])
  })

  it('D43.5a: that arrive in parts count for the room of their tenant from the beginning, until they expire', async () => {
    const small = open({ maxBytes: 8 })
    const begun = await small.begin(ACME, { name: 'a', bytes: 8 })
    await small.uploads.receive(ACME, { fileId: begun, offset: 0 }, parts('1234'))
    expect(await refusal(add('5', { to: small }))).to.equal('invalid_request 413')
    expect(await refusal(small.begin(ACME, { name: 'b', bytes: 1 }))).to.equal('invalid_request 413')
    for (const ask of [small.get(ACME, begun), small.open(ACME, begun), small.delete(ACME, begun)])
      expect(await refusal(ask)).to.equal('not_found 404')
    expect([await small.page(ACME, { limit: 1 }), await kept()]).to.deep.equal([[], 1])
    nowMs += FILE_LIMITS.uploadMs
    expect(await refusal(small.uploads.get(ACME, begun))).to.equal('not_found 404')
    await small.sweep()
    expect(await kept()).to.equal(0)
    await add('12345678', { to: small })
  })

  it('D43.5b: that arrive in parts are found by their tenant alone, and take the bytes of one of two that send the same', async () => {
    const begun = await files.begin(ACME, { name: 'a.png', bytes: 14 })
    const receive = (offset: number, ...texts: string[]) =>
      files.uploads.receive(ACME, { fileId: begun, offset }, parts(...texts))
    for (const ask of [files.uploads.get(OTHER, begun), files.delete(OTHER, begun, { isUpload: true })])
      expect(await refusal(ask)).to.equal('not_found 404')
    const raced = await Promise.allSettled([receive(0, '%PDF-1.7\n'), receive(0, '%PDF-1.7\n')])
    expect(raced.map(({ status }) => status)).to.have.members(['fulfilled', 'rejected'])
    expect(await refusal(receive(0, '%PDF-1.7\n'))).to.equal('conflict 409')
    expect(await receive(9, 'ab', 'cde')).to.equal(14)
    expect(await files.get(ACME, begun)).to.include({ media_type: 'application/pdf', bytes: 14 })
    expect(await read(await files.get(ACME, begun))).to.equal('%PDF-1.7\nabcde')
    expect(await kept()).to.equal(1)
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
