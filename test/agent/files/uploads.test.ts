// Tests uploads.ts, files.ts and contents.ts: what they leave when they break off at any step, or when others come between.

import { join } from 'node:path'
import { expect } from 'chai'
import { Files } from '../../../shared/agent/files/files.ts'
import { FILE_CONTENTS, FILE_DUES, FILES } from '../../../shared/agent/files/records.ts'
import { SYSTEM_TENANT } from '../../../shared/kernel/tenant.ts'
import { contentOf, readAll } from '../../../shared/platform/objects/content.ts'
import { openDisk } from '../../../shared/platform/objects/disk.ts'
import type { Objects } from '../../../shared/platform/objects/port.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { listAll } from '../../support/s3.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'

const ACME = tenantId('acme')
const [HOUR, DAY] = [3_600_000, 24 * 3_600_000]
const BYTES = Buffer.from('the same bytes')
const RECORDING = { name: 'a.txt', bytes: BYTES.length }
type Step = (number: number) => Promise<void> | void

describe('files at each step of their way', () => {
  const folder = useTempFolder()
  const store = useTestStore()
  let disk: Objects
  let nowMs = Date.parse('2026-11-29T09:30:00Z')
  before(async () => {
    disk = await openDisk(join(folder.path, 'objects'))
  })

  /** Files whose every operation on the store and the objects is preceded by `before` and followed by `after`. */
  function open({ before = () => {}, after = () => {} }: { before?: Step; after?: Step } = {}): Files {
    let steps = 0
    const stepping = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(of, name) {
          const method = Reflect.get(of, name) as (...args: unknown[]) => unknown
          if (typeof method !== 'function' || name === 'list') return method
          return async (...args: unknown[]) => {
            const step = ++steps
            await before(step)
            const result = await method.apply(of, args)
            await after(step)
            return result
          }
        },
      })
    const stepped: Store = { ...store.store, collection: (spec) => stepping(store.store.collection(spec)) }
    return new Files(stepped, stepping(disk), { now: () => nowMs })
  }

  const add = (files: Files) =>
    files.add(ACME, { ...RECORDING, content: BYTES, sha256: contentOf(BYTES).sha256, retentionMs: DAY })
  async function* sent() {
    yield BYTES.subarray(0, 4)
    yield BYTES.subarray(4)
  }
  async function addInParts(files: Files) {
    const file_id = await files.begin(ACME, { ...RECORDING, retentionMs: DAY })
    await files.uploads.receive(ACME, { fileId: file_id, offset: 0 }, sent())
    return { file_id }
  }
  async function addTwiceAndDelete(files: Files) {
    const added = [await add(files), await add(files)]
    for (const { file_id } of added) await files.delete(ACME, file_id)
  }
  async function addAndExpire(files: Files) {
    await add(files)
    nowMs += DAY
    await files.sweep()
  }
  async function beginAndEnd(files: Files) {
    const file_id = await files.begin(ACME, RECORDING)
    await files.uploads.receive(
      ACME,
      { fileId: file_id, offset: 0 },
      (async function* () {
        yield BYTES.subarray(0, 4)
      })(),
    )
    await files.delete(ACME, file_id, { isUpload: true })
  }

  async function left(): Promise<number[]> {
    const count = async (tenant: typeof ACME, spec: typeof FILES) =>
      (await store.store.collection(spec).page(tenant, { limit: 10 })).length
    const bytes = await store.store.collection(FILE_CONTENTS).get(ACME, { sha256: contentOf(BYTES).sha256 })
    return [
      await count(ACME, FILES),
      await count(SYSTEM_TENANT, FILE_DUES),
      bytes ? 1 : 0,
      (await listAll(disk, '')).length,
    ]
  }
  async function sweepLater(files = open()) {
    for (const ms of [HOUR, 2 * DAY, 2 * HOUR]) {
      nowMs += ms
      await files.sweep()
    }
  }

  for (const work of [addInParts, addTwiceAndDelete, addAndExpire, beginAndEnd])
    it(`leave nothing behind their time, whenever ${work.name} breaks off`, async () => {
      for (let [at, isReached] = [1, true]; isReached; at++)
        for (const when of ['before', 'after'] as const) {
          isReached = false
          const die = (step: number) => {
            if (step < at) return
            isReached = true
            return Promise.reject(new Error('the process died'))
          }
          await work(open({ [when]: die })).catch(() => {})
          await sweepLater()
          expect(await left(), `${when} step ${at}`).to.deep.equal([0, 0, 0, 0])
        }
    })

  for (const work of [add, addInParts])
    it(`keep bytes that ${work.name} names again at any step of the sweep that deletes them, and the other way round`, async () => {
      const keptBy = async ({ file_id }: { file_id: string }) => {
        const files = open()
        expect((await readAll((await files.open(ACME, file_id)).body, 1e6)).toString()).to.equal(String(BYTES))
        await sweepLater(files)
        expect(await left()).to.deep.equal([0, 0, 0, 0])
      }
      for (let [at, isReached] = [1, true]; isReached; at++) {
        isReached = false
        const once = (step: number, other: () => Promise<unknown>) => {
          if (step !== at) return
          isReached = true
          return other().then(() => {})
        }
        await add(open())
        nowMs += DAY
        let second: Promise<{ file_id: string }> | undefined
        await open({ before: (step) => once(step, () => (second = work(open()))) }).sweep()
        await keptBy(await (second ?? work(open())))

        await add(open())
        nowMs += DAY
        await keptBy(await work(open({ before: (step) => once(step, () => open().sweep()) })))
      }
    })
})
