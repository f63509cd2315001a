import type { Page } from 'playwright-core'
import type { AskedCall } from '../../../shared/reading/read-call.ts'
import type { ConsoleUnderTest } from '../support/console.ts'
import { goTo } from '../support/two-people.ts'

const PAGE = 200

/** The permission requests that the server answers with, in place of its own: their tools, inputs and previews are those of the test. */
export class MockedAsks {
  #asks: object[] = []
  readonly #pages: ConsoleUnderTest
  readonly #page: Page

  private constructor(pages: ConsoleUnderTest, page: Page) {
    this.#pages = pages
    this.#page = page
  }

  static async in(pages: ConsoleUnderTest, page: Page): Promise<MockedAsks> {
    const mocked = new MockedAsks(pages, page)
    await page.route(`${pages.product.url}/permissions?*`, (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0)
      const next = from + PAGE < mocked.#asks.length ? String(from + PAGE) : null
      const permissions = mocked.#asks.slice(from, from + PAGE)
      return route.fulfill({ json: { permissions, next_cursor: next, total: mocked.#asks.length } })
    })
    await page.route(`${pages.product.url}/runs/run_*`, (route) =>
      route.fulfill({ status: 404, json: { error: { type: 'not_found_error', message: 'no such run' } } }),
    )
    return mocked
  }

  /** Lets these wait, and opens the list of them. */
  async open(calls: readonly (AskedCall & { name: string })[]): Promise<void> {
    const now = Date.now()
    this.#asks = calls.map(({ name, input, preview }, i) => ({
      ...{ id: idOf(i), session_id: 'a', run_id: `run_${String(i).padStart(32, '0')}`, tool_name: name },
      ...{ tool_use_id: `t${i}`, input, message: 'asks', ...(preview && { preview }) },
      ...{ created_at: new Date(now).toISOString(), expires_at: new Date(now + 3_600_000 + i).toISOString() },
    }))
    await this.#page.goto(this.#pages.at('/approvals'))
    await this.#page.locator('[data-ask]').first().waitFor()
  }

  /** Goes to one of them, by its number, and returns its card. */
  async show(number: number) {
    await goTo(this.#page, this.#pages.at(`/approvals/${idOf(number)}`))
    const card = this.#page.locator(`[data-ask="${idOf(number)}"]`)
    await card.waitFor()
    return card
  }

  /** The texts of all cards, in order, as the page shows them beside the button that allows. */
  texts(count: number): Promise<string[]> {
    return this.#page.evaluate<string[]>(`(async () => {
      const texts = []
      for (let i = 0; i < ${count}; i++) {
        const id = 'perm_' + String(i).padStart(32, '0')
        history.pushState(null, '', ${JSON.stringify(this.#pages.at('/approvals/'))} + id)
        dispatchEvent(new PopStateEvent('popstate'))
        let card
        while (!(card = document.querySelector('[data-ask="' + id + '"]'))) await new Promise((resolve) => setTimeout(resolve))
        texts.push(card.querySelector('strong').textContent + card.querySelector('.whole').textContent)
      }
      return texts
    })()`)
  }
}

const idOf = (number: number) => `perm_${String(number).padStart(32, '0')}`
