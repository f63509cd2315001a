import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { createLedger, LEDGER, type Ledger } from '../../../../shared/agent/customers/store/ledger.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { useMongo } from '../../../support/mongo.ts'
import { until } from '../../../support/until.ts'

const WRITES = 240
const CUSTOMERS = 40
const KILLED_AFTER = WRITES / 2

describe('a replica set of three MongoDB members', () => {
  const mongo = useMongo({ members: 3 })

  it('acknowledges no entry that only the primary has', async () => {
    const store = await openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections: [LEDGER] })
    const primary = await mongo.set.primary()
    const others = mongo.set.members.filter((member) => member !== primary)
    const signal = (name: NodeJS.Signals) => Promise.all(others.map((member) => member.kill(name)))
    await signal('SIGSTOP')
    let isAcknowledged = false
    const writing = append(createLedger(store), 'c', 'run_c').then(() => (isAcknowledged = true))
    try {
      const isAlone = async () => !(await helloOf(primary.host)).isWritablePrimary
      await until(isAlone, { what: 'the primary to notice that it is alone', withinMs: 60_000 })
      expect(isAcknowledged).to.equal(false)
    } finally {
      await signal('SIGCONT')
    }
    expect(await writing).to.equal(true)
    await store.close()
  }).timeout(180_000)

  it('loses and repeats no acknowledged entry when its primary is killed in the middle of its writes', async () => {
    const store = await openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections: [LEDGER] })
    const ledger = createLedger(store)
    const primary = await mongo.set.primary()
    const acknowledged: { customer: string; run: string; seq: number }[] = []
    const killed = Promise.withResolvers<void>()
    const write = async (customer: string) => {
      for (let n = 1; n <= WRITES / CUSTOMERS; n++) {
        const run = `run_${customer}_${n}`
        acknowledged.push({ customer, run, seq: await append(ledger, customer, run) })
        if (acknowledged.length === KILLED_AFTER) primary.kill('SIGKILL').then(killed.resolve, killed.reject)
      }
    }
    const customers = Array.from({ length: CUSTOMERS }, (_, c) => `c${c}`)
    await Promise.all(customers.map(write))
    await killed.promise
    expect(primary.isRunning).to.equal(false)
    expect(await mongo.set.primary()).to.not.equal(primary)
    expect(acknowledged).to.have.length(WRITES)
    for (const customer of customers) {
      const { entries } = await ledger.page(TENANT, customer, { limit: 200 })
      const found = entries.reverse().map(({ seq, run_id: run }) => ({ customer, run, seq }))
      expect(found.map(({ seq }) => seq)).to.deep.equal(found.map((_, i) => i + 1))
      expect(found).to.deep.equal(acknowledged.filter((each) => each.customer === customer))
    }
    await store.close()
  }).timeout(180_000)
})

async function helloOf(host: string): Promise<{ isWritablePrimary?: boolean }> {
  await using client = new MongoClient(`mongodb://${host}/?directConnection=true`)
  return await client.db('admin').command({ hello: 1 })
}

/** Appends until it is acknowledged, as a client sends its prompt again. */
async function append(ledger: Ledger, customer: string, run_id: string): Promise<number> {
  for (;;) {
    try {
      return await ledger.append(TENANT, customer, { run_id, input: 'question', output: 'answer'.repeat(50) })
    } catch (cause) {
      if (!(cause instanceof AppError && cause.kind === 'unavailable')) throw cause
      await sleep(100)
    }
  }
}
