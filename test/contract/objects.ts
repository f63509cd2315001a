import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import { contentOf, readAll, sha256Of } from '../../shared/platform/objects/content.ts'
import type { ByteRange, Objects } from '../../shared/platform/objects/port.ts'
import { useOpened } from '../support/fixture.ts'
import { listAll } from '../support/s3.ts'

/** What the users of files need of objects: whole ones, parts of them, and lists. `open` opens an empty place. */
export function describeObjects(name: string, open: () => Promise<Objects> | Objects): void {
  describe(`objects: ${name}`, () => {
    const objects = useOpened(open)

    const read = async (key: string, range?: ByteRange) => {
      const found = await objects.find(key, range)
      return found && (await readAll(found.body, 1e7)).toString('latin1')
    }

    it('are found as they were written, once, and gone when they are deleted', async () => {
      expect([await objects.has('a/one.x'), await objects.find('a/one.x')]).to.deep.equal([false, undefined])
      expect(await objects.write('a/one.x', contentOf('hello'), 'absent')).to.be.a('string')
      expect(await objects.write('a/one.x', contentOf('other'), 'absent')).to.equal(undefined)
      expect([await objects.has('a/one.x'), await read('a/one.x')]).to.deep.equal([true, 'hello'])
      expect(await objects.write('a/one.x', contentOf('third'))).to.be.a('string')
      expect(await read('a/one.x')).to.equal('third')
      await objects.delete('a/one.x')
      await objects.delete('a/one.x')
      expect(await objects.find('a/one.x')).to.equal(undefined)
    })

    it('are streamed when they are large, and read in parts', async () => {
      const bytes = randomBytes(1_000_000)
      const content = {
        bytes: bytes.length,
        sha256: sha256Of(bytes),
        open: () => Readable.from([bytes.subarray(0, 300_000), bytes.subarray(300_000)]),
      }
      await objects.write('large', content)
      expect(await read('large')).to.equal(bytes.toString('latin1'))
      for (const [from, to] of [
        [0, 0],
        [299_990, 300_010],
        [999_999, 999_999],
        [0, 999_999],
      ] as const)
        expect(await read('large', { from, to }), `${from}`).to.equal(bytes.subarray(from, to + 1).toString('latin1'))
    })

    it('are listed by the beginning of their keys, with their ages', async () => {
      for (const key of ['l/2.b', 'l/1.a', 'm/1']) await objects.write(key, contentOf(key))
      const found = await listAll(objects, 'l/')
      expect(found.map(({ key }) => key)).to.deep.equal(['l/1.a', 'l/2.b'])
      for (const { ageMs } of found) expect(ageMs).to.be.within(-5_000, 60_000)
    })

    it('whose bytes break off are not there', async () => {
      const breaking = () =>
        Readable.from(
          (async function* () {
            yield Buffer.from('half')
            throw new Error('broken')
          })(),
        )
      const failure = await objects.write('broken', { bytes: 8, sha256: sha256Of('x'), open: breaking }).then(
        () => undefined,
        (cause: unknown) => cause,
      )
      expect(failure).to.include({ kind: 'unavailable' })
      expect(await objects.find('broken')).to.equal(undefined)
    })
  })
}
