import { expect } from 'chai'
import { keepBeforeMove, keepFiles, storeEffects } from '../../services/worker/keep-files.ts'
import { oneByOne } from '../../shared/kernel/async/batch.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent } from '../../shared/kernel/events.ts'
import { TooMuch } from '../../shared/work/runs/kept/scan.ts'
import { SILENT_LOG as log } from '../support/silent-log.ts'
import { tenantId } from '../support/tenant.ts'

const folder = { id: 'run_1', tenant: tenantId('t'), workspace: 's.1' }
const DONE = { type: 'done' } as AgentEvent
const TEXT = { type: 'text_delta', text: 'x' } as AgentEvent

describe('the files of a session at the end of its run', () => {
  /** The run's events; `saved` says when its files were stored. */
  async function run(save: () => Promise<void>, last = DONE, together = false): Promise<string[]> {
    const seen: string[] = []
    const events = (async function* () {
      if (together) yield [TEXT, last]
      if (together) return
      yield TEXT
      yield last
    })()
    const kept = {
      async save() {
        seen.push('saving')
        await save()
        seen.push('saved')
      },
    }
    for await (const event of oneByOne(keepFiles(folder, events, { kept, log })))
      seen.push('code' in event ? String(event.code) : event.type)
    return seen
  }

  it('D35: are stored before done, and before any other end', async () => {
    expect(await run(async () => {})).to.deep.equal(['text_delta', 'saving', 'saved', 'done'])
    const cut = errorEvent('cancelled', 'cut')
    expect(await run(async () => {}, cut)).to.deep.equal(['text_delta', 'saving', 'saved', 'cancelled'])
    expect(await run(async () => {}, DONE, true)).to.deep.equal(['text_delta', 'saving', 'saved', 'done'])
  })

  it('D35: are stored behind each turn, one time after the other, and nobody waits for that', async () => {
    const saves: PromiseWithResolvers<void>[] = []
    const kept = {
      save() {
        const saving = Promise.withResolvers<void>()
        saves.push(saving)
        return saving.promise
      },
    }
    const turn = { type: 'turn_end' } as AgentEvent
    const events = (async function* () {
      yield* [turn, turn, TEXT]
      saves[0]?.reject(new Error('away'))
      await new Promise(setImmediate)
      yield turn
    })()
    for await (const _ of oneByOne(keepFiles(folder, events, { kept, log }))) expect(saves.length).to.be.within(1, 2)
    expect(saves).to.have.length(2)
  })

  it('D35: that cannot be stored are a warning, and the run ends as it would', async () => {
    for (const cause of [new AppError('unavailable', 'away'), new TooMuch('too much'), new Error('bug')])
      expect(await run(() => Promise.reject(cause))).to.deep.equal([
        'text_delta',
        'saving',
        'workspace_not_stored',
        'done',
      ])
  })

  it('D35.2c: after a tool call they are stored before its result counts; those that are not are named', async () => {
    const [a, b] = [
      { path: 'a', mtimeMs: 1 },
      { path: 'b', mtimeMs: 2 },
    ]
    const store = (save: () => Promise<void>) =>
      storeEffects(folder, { kept: { save, unstored: async () => [a, b] }, log })
    expect(await store(async () => {})).to.deep.equal([])
    for (const cause of [new AppError('unavailable', 'away'), new TooMuch('too much')])
      expect(await store(() => Promise.reject(cause))).to.deep.equal([a, b])
    expect(
      await store(() => Promise.reject(new AppError('conflict', 'taken'))),
      'another worker has them',
    ).to.deep.equal([])
  })

  it('D35.2b: the warning says what is the matter', async () => {
    const events = (async function* () {
      yield DONE
    })()
    const kept = { save: () => Promise.reject(new TooMuch('the folder holds more than 3 files')) }
    for await (const event of oneByOne(keepFiles(folder, events, { kept, log })))
      if (event.type === 'warning') expect(event.detail['reason']).to.equal('the folder holds more than 3 files')
  })

  it('D35: that another worker has taken over end the run with worker_lost in place of done', async () => {
    const taken = () => Promise.reject(new AppError('conflict', 'taken'))
    expect(await run(taken)).to.deep.equal(['text_delta', 'saving', 'worker_lost'])
    expect(await run(taken, errorEvent('cancelled', 'cut'))).to.deep.equal(['text_delta', 'saving', 'cancelled'])
  })

  it('a session moves although its files cannot be stored', async () => {
    await keepBeforeMove(folder, { kept: { save: () => Promise.reject(new Error('away')) }, log })
  })
})
