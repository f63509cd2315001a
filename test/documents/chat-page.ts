import type { Page, Response } from 'playwright-core'
import { until } from '../support/until.ts'

/** A page of the guide in a browser, as a person uses it. */
export class ChatPage {
  readonly page: Page
  /** The messages of the errors that the page did not catch. */
  readonly failures: string[] = []

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', ({ message }) => this.failures.push(message))
  }

  /** The id of the chat. */
  get id(): string {
    return new URL(this.page.url()).hash.slice(1)
  }

  async send(prompt: string): Promise<void> {
    await this.page.locator('[name=prompt]').fill(prompt)
    await this.page.getByRole('button', { name: 'Send' }).click()
  }

  /** Waits for a text of the assistant; that of the user has more lines. */
  shows(text: string): Promise<void> {
    return this.page.getByText(text, { exact: true }).waitFor()
  }

  count(text: string): Promise<number> {
    return this.page.getByText(text, { exact: true }).count()
  }

  /** Waits for a call with this text in its input. */
  asks(text: string): Promise<void> {
    return this.page.locator('code').getByText(text).waitFor()
  }

  click(name: string): Promise<void> {
    return this.page.getByRole('button', { name }).first().click()
  }

  /** Has the newest message edited, or answered again. */
  clickLast(name: string): Promise<void> {
    return this.page.getByRole('button', { name }).last().click()
  }

  /** Waits for the whole answer to what a person does. */
  async answered(act: () => Promise<void>): Promise<void> {
    const isAnswer = (response: Response) => response.url().endsWith('/ui/chat')
    const answer = this.page.waitForResponse(isAnswer)
    await act()
    await (await answer).finished()
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
}
