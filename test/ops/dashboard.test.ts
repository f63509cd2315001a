import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../shared/work/queue/bullmq-consume.ts'
import { createBullSchedules } from '../../shared/work/queue/bullmq-schedules.ts'
import type { Job } from '../../shared/work/queue/port.ts'
import { openBrowser } from '../support/browser.ts'
import { useOpened } from '../support/fixture.ts'
import { useRedis } from '../support/redis.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'
import { useOps } from './setup.ts'

const TOKEN = 'an-ops-token'
const TENANT = tenantId('acme')
const planId = (digit: number) => `plan_${'0'.repeat(8)}${String(digit).repeat(24)}`
const FAILED = planId(7)

describe('the dashboard in a browser', () => {
  const redis = useRedis()
  const open = useOps()
  const browser = useOpened(openBrowser)

  /** Three plans, of which one fails, and a schedule. */
  async function fillQueue(): Promise<void> {
    const queue = createBullQueue(redis.url)
    const schedules = createBullSchedules(redis.url)
    const handle = async ({ id }: Job) => (id === FAILED ? { failed: `${id} failed: step build` } : undefined)
    const consume = createBullConsume({ url: redis.url, onProblem: () => {} })
    const consumer = await consume('plan', handle, { concurrency: 1, onGivenUp: async () => {} })
    for (const id of [planId(1), FAILED]) await queue.add({ kind: 'plan', tenant: TENANT, id })
    await until(async () => (await queue.counts('plan')).failed === 1, { what: 'the plan to have failed' })
    await consumer.close()
    await queue.add({ kind: 'plan', tenant: TENANT, id: planId(2) })
    await schedules.put(TENANT, 'nightly', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    await schedules.put(TENANT, 'often', { every_secs: 3_600 })
    await Promise.all([queue.close(), schedules.close()])
  }

  /** Opens a page and records the hosts that it asks and what goes wrong in it. */
  async function openPage(password?: string): Promise<{ page: Page; hosts: Set<string>; problems: string[] }> {
    const credentials = password === undefined ? {} : { httpCredentials: { username: 'ops', password } }
    const page = await (await browser.newContext(credentials)).newPage()
    const hosts = new Set<string>()
    const problems: string[] = []
    page.on('request', (request) => hosts.add(new URL(request.url()).origin))
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    return { page, hosts, problems }
  }

  it('D1.3: OPS_TOKEN as the password opens it, a failed plan is found with its reason, and no request leaves the server', async () => {
    await fillQueue()
    const ops = await open({ opsToken: TOKEN, redisUrl: redis.url })
    const { page, hosts, problems } = await openPage(TOKEN)
    await page.goto(`${ops.url}/queues`)
    await page.getByText('agent-engine').first().waitFor()
    await page.getByRole('link', { name: 'plan' }).first().click()
    await page.getByText('Failed', { exact: false }).first().click()
    await page.getByText(`${FAILED} failed: step build`).first().waitFor()
    expect(await page.content())
      .to.include(FAILED)
      .and.not.include(planId(1))
    await page.goto(`${ops.url}/queues/queue/plan/${FAILED}`)
    await page.getByText('Data', { exact: true }).click()
    await page.getByText('acme').first().waitFor()
    await page.goto(`${ops.url}/queues/job-schedulers`)
    await page.getByText('30 2 * * *').first().waitFor()
    await page.getByText('every 3600').first().waitFor()
    expect([...hosts]).to.deep.equal([ops.url])
    expect(problems).to.deep.equal([])
  })

  it('D1.3 OPS_TOKEN: without the token, or with a wrong one, a browser sees nothing of it', async () => {
    const ops = await open({ opsToken: TOKEN, redisUrl: redis.url })
    for (const password of [undefined, 'wrong']) {
      const { page } = await openPage(password)
      const response = await page.goto(`${ops.url}/queues`).catch((cause: unknown) => cause)
      if (response instanceof Error) expect(response.message).to.include('ERR_INVALID_AUTH_CREDENTIALS')
      else
        expect(await page.content())
          .to.include('OPS_TOKEN')
          .and.not.include('agent-engine')
    }
  })
})
