import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { keepsConditions } from '../../../shared/platform/objects/check.ts'
import { contentOf, readAll, sha256Of } from '../../../shared/platform/objects/content.ts'
import type { Objects } from '../../../shared/platform/objects/port.ts'
import { CuttingProxy } from '../../support/cutting-proxy.ts'
import { listAll, useS3 } from '../../support/s3.ts'

describe('objects in S3', () => {
  const s3 = useS3()
  let objects: Objects
  before(() => {
    objects = s3.open()
  })
  after(() => objects.close())

  const textOf = async (key: string) => {
    const found = await objects.find(key)
    return found && (await readAll(found.body, 1_000)).toString()
  }
  const keysOf = async (prefix: string) => (await listAll(objects, prefix)).map(({ key }) => key)
  const causeOf = async (work: Promise<unknown>) => {
    const failure = await work.then(
      () => expect.fail('it should throw'),
      (thrown: unknown) => thrown,
    )
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable', status: 503 })
    expect(String(failure)).to.not.match(/127\.0\.0\.1|test-/)
    return String((failure as AppError).cause)
  }

  it('are found as they were written, replaced, and gone when they are deleted', async () => {
    expect(await objects.find('a/one')).to.equal(undefined)
    expect(await objects.has('a/one')).to.equal(false)
    for (const text of ['hello', 'à bientôt', '']) {
      const tag = await objects.write('a/one', contentOf(text))
      expect(await textOf('a/one')).to.equal(text)
      const found = await objects.find('a/one')
      await readAll(found?.body ?? expect.fail('not found'), 100)
      expect(found?.tag).to.equal(tag)
    }
    expect(await objects.has('a/one')).to.equal(true)
    await objects.delete('a/one')
    await objects.delete('a/one')
    expect(await objects.find('a/one')).to.equal(undefined)
  })

  it('are written under a condition only while it holds, and of many that try at once one does', async () => {
    const tag = (await objects.write('c/one', contentOf('1'), 'absent')) ?? expect.fail('not written')
    expect(await objects.write('c/one', contentOf('2'), 'absent')).to.equal(undefined)
    const tries = Array.from({ length: 10 }, (_, i) => objects.write('c/one', contentOf(`try ${i}`), { tag }))
    expect((await Promise.all(tries)).filter((each) => each !== undefined)).to.have.length(1)
    expect(await textOf('c/one')).to.match(/^try \d$/)
    expect(await objects.write('c/none', contentOf('1'), { tag })).to.equal(undefined)
    expect(await keepsConditions(objects)).to.equal(true)
    expect(await keysOf('check/'), 'the check leaves nothing').to.deep.equal([])
  })

  it('are streamed when they are large', async () => {
    const bytes = randomBytes(5_000_000)
    const open = () => Readable.from([bytes.subarray(0, 3_000_000), bytes.subarray(3_000_000)])
    await objects.write('large', { bytes: bytes.length, sha256: sha256Of(bytes), open })
    const found = await objects.find('large')
    expect(sha256Of(await readAll(found?.body ?? expect.fail('not found'), 9e6))).to.equal(sha256Of(bytes))
  })

  it('are listed by the beginning of their keys, with their ages, over several pages', async () => {
    const keys = Array.from({ length: 7 }, (_, i) => `l/${i}_a-b.c/d`)
    await Promise.all(keys.map((key) => objects.write(key, contentOf('x'))))
    await objects.write('m/other', contentOf('x'))
    const paged = s3.open({ pageKeys: 3 })
    const found = await listAll(paged, 'l/')
    expect(found.map(({ key }) => key)).to.deep.equal(keys)
    expect(found[0]?.ageMs).to.be.within(-2_000, 60_000)
    expect(await keysOf('none/')).to.deep.equal([])
    const whole = s3.open({}, { prefix: '' })
    expect((await listAll(whole, `${s3.place.prefix}m/`))[0]?.key).to.equal(`${s3.place.prefix}m/other`)
    await Promise.all([whole.close(), paged.close()])
  })

  it('a store that refuses is unavailable at once, with its code as the cause', async () => {
    const wrongKey = s3.open({}, { secretKey: 'other-secret' })
    const began = performance.now()
    expect(await causeOf(wrongKey.write('x', contentOf('x')))).to.include('403 SignatureDoesNotMatch')
    expect(await causeOf(listAll(wrongKey, ''))).to.include('403')
    const noBucket = s3.open({}, { bucket: 'no-such-bucket' })
    expect(await causeOf(noBucket.find('x'))).to.include('404 NoSuchBucket')
    expect(performance.now() - began, 'it is not tried again').to.be.below(5_000)
    await Promise.all([wrongKey.close(), noBucket.close()])
  })

  it('a store that is away is waited for, and a break in a request is not seen', async () => {
    const { port } = new URL(s3.place.endpoint ?? '')
    const proxy = await CuttingProxy.open(Number(port), {})
    const behind = s3.open({ waitMs: 300 }, { endpoint: `http://127.0.0.1:${proxy.port}` })
    await behind.write('p', contentOf('1'))
    proxy.cutAll()
    await behind.write('p', contentOf('2'))
    proxy.close()
    expect(await causeOf(behind.find('p'))).to.match(/could not be reached|refused|egress/i)
    expect(await textOf('p')).to.equal('2')
    await behind.close()
  })
})
