// Tests services/gateway/bodies/tus.ts with the unmodified tus-js-client, in both forms, and what is left when a process is killed.

import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { Upload } from 'tus-js-client'
import { sha256Of } from '../../shared/platform/objects/content.ts'
import { Child } from '../support/child.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, startStandalone, useProduct } from '../support/product.ts'
import { listAll, useS3 } from '../support/s3.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const PART = 2 * 1024 * 1024
/** A PDF by its first bytes, whatever it is called. */
const PDF = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(3 * PART)])
const TUS = { 'Tus-Resumable': '1.0.0' }

type Options = ConstructorParameters<typeof Upload>[1]

/** Uploads `bytes` with the client of tus; `stopAt` ends it when the server has that many. Returns the address of the file. */
function upload(bytes: Buffer, options: Options, stopAt = Infinity): Promise<string> {
  return new Promise((resolve, reject) => {
    const running = new Upload(bytes, {
      ...{ metadata: { filename: 'plän.png' }, retryDelays: null, onError: reject },
      ...options,
      onChunkComplete(_size, accepted) {
        if (accepted >= stopAt) running.abort().then(() => resolve(running.url ?? ''), reject)
      },
      onSuccess: () => resolve(running.url ?? ''),
    })
    running.start()
  })
}

const at = (base: string, address: string) => `${base}/files/${address.split('/').at(-1)}`
async function offsetAt(address: string): Promise<number> {
  const answer = await fetch(address, { method: 'HEAD', headers: TUS })
  return answer.status === 200 ? Number(answer.headers.get('upload-offset')) : -answer.status
}
const list = async (base: string) =>
  ((await (await fetch(`${base}/files`)).json()) as { files: { file_id: string; bytes: number }[] }).files

inBothForms('D43.5a: an upload in parts', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() => startProduct({ ...mongo?.env }))

  it('that is cut goes on at its offset, at another gateway, is no file before its end, and is typed by its bytes', async () => {
    const [first = '', other = first] = product.urls
    const cut = await upload(PDF, { endpoint: `${first}/files`, chunkSize: PART }, PART)
    expect(await offsetAt(at(other, cut))).to.equal(PART)
    expect((await fetch(at(first, cut))).status).to.equal(404)
    expect(await list(other)).to.deep.equal([])
    await upload(PDF, { endpoint: `${other}/files`, uploadUrl: at(other, cut), chunkSize: PART })
    const file = (await (await fetch(at(first, cut))).json()) as Record<string, unknown>
    const expected = { name: 'plän.png', media_type: 'application/pdf', bytes: PDF.length, sha256: sha256Of(PDF) }
    expect(file).to.include(expected)
    expect(await offsetAt(at(first, cut))).to.equal(PDF.length)
    const content = Buffer.from(await (await fetch(`${at(other, cut)}/content`)).arrayBuffer())
    expect(content.equals(PDF)).to.equal(true)
  })

  it('may bring bytes with its creation, and is gone when its client ends it', async () => {
    const endpoint = `${product.url}/files?expires_in_secs=3600`
    const cut = await upload(PDF, { endpoint, chunkSize: PART, uploadDataDuringCreation: true }, PART)
    await Upload.terminate(at(product.url, cut))
    expect(await offsetAt(at(product.url, cut))).to.equal(-404)
  })
})

describe('D43.5a: an upload in parts of a product whose bytes are in S3', () => {
  const s3 = useS3()
  const product = useProduct(() => startStandalone({ ...s3.env }))

  it('that is cut goes on there, is one object at its end, and is gone when its client ends it', async () => {
    const endpoint = `${product.url}/files`
    const cut = await upload(PDF, { endpoint, chunkSize: PART }, PART)
    expect(await offsetAt(cut)).to.equal(PART)
    await upload(PDF, { endpoint, uploadUrl: cut, chunkSize: PART })
    const content = Buffer.from(await (await fetch(`${cut}/content`)).arrayBuffer())
    expect(content.equals(PDF)).to.equal(true)
    const other = await upload(randomBytes(3 * PART), { endpoint, chunkSize: PART }, PART)
    await Upload.terminate(other)
    expect(await offsetAt(other)).to.equal(-404)
    await using objects = Object.assign(s3.open(), { [Symbol.asyncDispose]: () => objects.close() })
    const keys = (await listAll(objects, 'files/')).map(({ key }) => key)
    expect(keys).to.have.length(1)
    expect(keys[0]).to.include(sha256Of(PDF))
  })
})

describe('D43.5b: a gateway that is killed while files arrive', () => {
  const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname
  const dataDir = useTempFolder()
  const children: Child[] = []
  after(() => Promise.all(children.map((child) => child.end('SIGKILL'))))
  async function start(): Promise<{ url: string; child: Child }> {
    const env = { DATA_DIR: join(dataDir.path, 'data'), PORT: '0', OPS_PORT: '0' }
    const child = new Child(process.execPath, [MAIN], env)
    children.push(child)
    return { child, url: (JSON.parse(await child.line(/"listening"/)) as { url: string }).url }
  }
  async function filesIn(folder: string): Promise<string[]> {
    const found = await readdir(join(dataDir.path, 'data', folder), { recursive: true, withFileTypes: true }).catch(
      () => [],
    )
    return found.filter((each) => each.isFile()).map(({ name }) => name)
  }
  /** More than two parts, however the connection cuts it, and less than three. */
  const SENT = 2.5 * PART
  /** Sends a request whose body does not end. */
  function beginSending(url: string, method: string, headers: Record<string, string | number>) {
    const sent = request(url, { method, headers: { ...headers, 'content-length': PDF.length } })
    sent.on('error', () => {})
    sent.write(PDF.subarray(0, SENT))
    return sent
  }

  it('loses what it has not stored of an upload in parts, which goes on; of a plain upload nothing is left, and it can be repeated', async () => {
    const first = await start()
    const metadata = `filename ${Buffer.from('a.pdf').toString('base64')}`
    const creation = { ...TUS, 'Upload-Length': String(PDF.length), 'Upload-Metadata': metadata }
    const created = await fetch(`${first.url}/files`, { method: 'POST', headers: creation })
    const path = created.headers.get('location') ?? ''
    const patch = { ...TUS, 'Upload-Offset': 0, 'Content-Type': 'application/offset+octet-stream' }
    beginSending(at(first.url, path), 'PATCH', patch)
    beginSending(`${first.url}/files?name=plain.pdf`, 'POST', { 'Content-Type': 'application/pdf' })
    // HEAD would wait for the PATCH. Behind the second part the first one is in the record.
    const isUnderWay = async () =>
      (await filesIn('files/objects')).length === 2 && (await filesIn('spool')).length === 1
    await until(isUnderWay, { what: 'both uploads to be under way' })
    await first.child.end('SIGKILL')

    const { url } = await start()
    expect(await list(url)).to.deep.equal([])
    expect(await filesIn('spool')).to.deep.equal([])
    expect(await offsetAt(at(url, path))).to.be.within(PART, SENT)
    await upload(PDF, { endpoint: `${url}/files`, uploadUrl: at(url, path) })
    const again = await fetch(`${url}/files?name=plain.pdf`, { method: 'POST', body: PDF })
    expect(again.status).to.equal(201)
    expect((await list(url)).map(({ bytes }) => bytes)).to.deep.equal([PDF.length, PDF.length])
    const whole = (await filesIn('files/objects')).filter((name) => name.startsWith(sha256Of(PDF)))
    expect(whole).to.have.length(1) // A part that no record came to name is deleted by the sweep.
  })
})
