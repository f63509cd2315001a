import { expect } from 'chai'
import { createRedisOwners } from '../../../shared/broker/placement/redis-owners.ts'
import { openRedisLink, type RedisLink } from '../../../shared/broker/redis-link.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/tenant.ts'
import { useRedis } from '../../support/redis.ts'

const TENANT = DEFAULT_TENANT
const KEY = `ae:session:${TENANT} s1`
const DAY_SECS = 86_400

describe('owners in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  beforeEach(async () => {
    link = await openRedisLink(redis.url)
  })
  afterEach(() => link.close())

  it('of many claims of one session at the same time one wins, and every claimant learns which', async () => {
    const owners = createRedisOwners(link)
    const epochs = Array.from({ length: 20 }, (_, i) => i + 1)
    const winners = await Promise.all(epochs.map((epoch) => owners.claim(TENANT, 's1', epoch)))
    expect(new Set(winners)).to.have.property('size', 1)
    expect(await owners.find(TENANT, 's1')).to.equal(winners[0])
  })

  it('claims of another tenant and of another session are independent', async () => {
    const owners = createRedisOwners(link)
    expect(await owners.claim(TENANT, 's1', 1)).to.equal(1)
    expect(await owners.claim('other' as TenantId, 's1', 2)).to.equal(2)
    expect(await owners.claim(TENANT, 's10', 3)).to.equal(3)
    expect(await owners.find(TENANT, 's2')).to.equal(undefined)
  })

  it('a claim lasts a day; the owner extends it by claiming again, another worker does not', async () => {
    const owners = createRedisOwners(link)
    const client = redis.connect()
    await owners.claim(TENANT, 's1', 1)
    expect(await client.ttl(KEY)).to.be.within(DAY_SECS - 60, DAY_SECS)
    await client.expire(KEY, 100)
    expect(await owners.claim(TENANT, 's1', 2)).to.equal(1)
    expect(await client.ttl(KEY)).to.be.within(1, 100)
    expect(await owners.claim(TENANT, 's1', 1)).to.equal(1)
    expect(await client.ttl(KEY)).to.be.within(DAY_SECS - 60, DAY_SECS)
  })

  it('a claim released by a worker that does not own it stays', async () => {
    const owners = createRedisOwners(link)
    await owners.claim(TENANT, 's1', 1)
    await owners.release(TENANT, 's1', 2)
    expect(await owners.find(TENANT, 's1')).to.equal(1)
    await owners.release(TENANT, 's1', 1)
    expect(await owners.find(TENANT, 's1')).to.equal(undefined)
    await owners.release(TENANT, 's1', 1)
  })

  it('only the owner’s claim is transferred; it then belongs to the new owner for a day', async () => {
    const owners = createRedisOwners(link)
    expect(await owners.transfer(TENANT, 's1', { from: 1, to: 2 })).to.equal(false)
    expect(await owners.find(TENANT, 's1')).to.equal(undefined)
    await owners.claim(TENANT, 's1', 1)
    expect(await owners.transfer(TENANT, 's1', { from: 3, to: 2 })).to.equal(false)
    expect(await owners.find(TENANT, 's1')).to.equal(1)
    expect(await owners.transfer(TENANT, 's1', { from: 1, to: 2 })).to.equal(true)
    expect(await owners.find(TENANT, 's1')).to.equal(2)
    expect(await redis.connect().ttl(KEY)).to.be.within(DAY_SECS - 60, DAY_SECS)
    await owners.release(TENANT, 's1', 1)
    expect(await owners.find(TENANT, 's1')).to.equal(2)
  })
})
