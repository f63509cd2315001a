import type { Locator, Page } from 'playwright-core'
import { until } from '../support/until.ts'

/** What Chromium says of a connection that broke, which some packages leave uncaught. */
const BROKEN = 'network error'

/** A page of the guide in a browser, or one with the same elements, as a person uses it. */
export class ChatPage {
  readonly page: Page
  /** The messages of the errors that the page did not catch. */
  readonly failures: string[] = []

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', ({ message }) => message === BROKEN || this.failures.push(message))
  }

  /** The id of the chat. */
  get id(): string {
    return new URL(this.page.url()).hash.slice(1)
  }

  async send(prompt: string): Promise<void> {
    await this.page.locator('[name=prompt]').fill(prompt)
    await this.click('Send')
  }

  /** Replaces the newest message of the person. Packages name the field for its new text in two ways. */
  async edit(text: string): Promise<void> {
    await this.clickLast('Edit')
    await this.page.locator('[name=prompt], [name=edit]').first().fill(text)
    await this.page
      .getByRole('button', { name: /^(Save|Send)$/ })
      .first()
      .click()
  }

  /** Waits for a text of a message. */
  shows(text: string): Promise<void> {
    return this.#text(text).waitFor()
  }

  /** Waits for a call with this text in its input, and for the question whether it may be made, which comes after it. */
  async asks(text: string): Promise<void> {
    await this.page.locator('code').getByText(text).waitFor()
    await this.button('Allow').first().waitFor()
  }

  /** Waits for a text in the result of a call. */
  results(text: string | RegExp): Promise<void> {
    return this.page.locator('output').getByText(text).waitFor()
  }

  get alert(): Locator {
    return this.page.getByRole('alert')
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name })
  }

  click(name: string): Promise<void> {
    return this.button(name).first().click()
  }

  clickLast(name: string): Promise<void> {
    return this.button(name).last().click()
  }

  /** The texts of the messages, from top to bottom. */
  texts(): Promise<string[]> {
    return this.page.locator('p:not([role=alert])').allTextContents()
  }

  /** What a person reads: texts, calls, their results, and errors. */
  async read(): Promise<string> {
    return (await this.page.locator('p, code, output').allTextContents()).join('\n')
  }

  /** Waits until the page shows after a reload what it has shown before. */
  async reload(): Promise<void> {
    const before = await this.read()
    await this.page.reload()
    await until(async () => (await this.read()) === before, { what: `the page to show again: ${before}` })
  }

  close(): Promise<void> {
    return this.page.close()
  }

  #text(text: string): Locator {
    return this.page.locator('p').getByText(text, { exact: true })
  }
}
