import type { Page } from 'playwright-core'

/** Tabs beyond the number of places on a page: boxes that scroll take the focus, too. */
const BEYOND = 20
/** Several times around a page that is still being drawn. */
const MOST_TABS = 400

/** Goes through the page with Tab. Returns the places that are not reached, and those that have the focus without being seen to have it. */
export async function walk(page: Page): Promise<string[]> {
  await page.evaluate(TABS)
  const places = await page.evaluate<number>('tabs.begin()')
  for (let i = 0; i <= places; i++) await page.keyboard.press('Tab')
  for (let i = 0; i < BEYOND && (await page.evaluate<boolean>('tabs.unreached().length > 0')); i++)
    await page.keyboard.press('Tab')
  return page.evaluate<string[]>('tabs.end()')
}

/** Goes on with Tab to the place of which the name begins so. Throws where the focus is not seen on the way, or does not get there. */
export async function tabTo(page: Page, name: string): Promise<void> {
  await page.locator('.skip').waitFor({ state: 'attached' })
  await page.evaluate(TABS)
  const passed: string[] = []
  while (passed.length < MOST_TABS) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate<{ name: string; faults: string[] }>('tabs.now()')
    if (at.faults.length > 0) throw new Error(at.faults.join('\n'))
    if (at.name.startsWith(name)) return
    passed.push(at.name)
  }
  throw new Error(`Tab does not lead to ${name}, but to ${[...new Set(passed)].join(' | ')}`)
}

/** The name of what has the focus. */
export async function focused(page: Page): Promise<string> {
  await page.evaluate(TABS)
  return page.evaluate<string>('tabs.now().name')
}

/** What a narrow window cuts: the texts of buttons, labels and fields, and such things themselves where a box hides their ends. */
export const cutOff = (page: Page): Promise<string[]> => page.evaluate<string[]>(CUT_OFF)

const COMMON = String.raw`
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true }) && each.getBoundingClientRect().width > 1
  const nameOf = (each) =>
    each === document.body ? 'nothing' : (each.ariaLabel ?? (each.labels?.[0] ?? each).innerText ?? each.textContent).trim().replace(/\s+/g, ' ').slice(0, 60) || each.outerHTML.slice(0, 60)`

const TABS = String.raw`globalThis.tabs ??= (() => {${COMMON}
  const PLACES = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]'
  const accent = getComputedStyle(document.querySelector('.skip')).backgroundColor
  const page = () => document.querySelector('#page')
  let reached = new Set()
  let faults = []
  const isOfOtherRadio = (each) => each.type === 'radio' && !each.checked
  const places = () => [...page().querySelectorAll(PLACES)].filter((each) => isShown(each) && !isOfOtherRadio(each) && !each.matches('[tabindex="-1"][aria-hidden]'))
  const unreached = () => places().filter((each) => !reached.has(each))
  const isMarked = (each, up = 3) => {
    const { outlineStyle, outlineWidth, borderTopColor } = getComputedStyle(each)
    const isOwn = (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || borderTopColor === accent
    return isOwn || (up > 0 && each !== page() && isMarked(each.parentElement, up - 1))
  }
  const isOnScreen = (each) => [...each.getClientRects()].some(({ left, right, top, bottom }) => {
    const [x, y] = [(Math.max(0, left) + Math.min(innerWidth, right)) / 2, (Math.max(0, top) + Math.min(innerHeight, bottom)) / 2]
    const seen = document.elementFromPoint(x, y)
    return seen !== null && (each.contains(seen) || (each.labels?.[0]?.contains(seen) ?? false))
  })
  const faultsOf = (each) => each === document.body || each === page() ? [] : [
    ...(isMarked(each) ? [] : ['has the focus without a mark: ' + nameOf(each)]),
    ...(isOnScreen(each) ? [] : ['has the focus out of sight: ' + nameOf(each)]),
  ]
  const note = () => {
    const each = document.activeElement
    if (!page().contains(each) || reached.has(each)) return
    reached.add(each)
    faults.push(...faultsOf(each))
  }
  addEventListener('keydown', note, { capture: true })
  return {
    begin() {
      reached = new Set()
      faults = []
      page().focus()
      return places().length
    },
    unreached() { note(); return unreached() },
    end() { note(); return [...faults, ...unreached().map((each) => 'is not reached: ' + nameOf(each))] },
    now: () => ({ name: nameOf(document.activeElement), faults: faultsOf(document.activeElement) }),
  }
})(); 0`

const CUT_OFF = String.raw`(() => {${COMMON}
  const pen = document.createElement('canvas').getContext('2d')
  const isOfText = (each) => {
    const { font, paddingLeft, paddingRight } = getComputedStyle(each)
    if (each.tagName === 'TEXTAREA') return each.value === '' && each.scrollHeight > each.clientHeight + 1
    if (!each.placeholder || each.value !== '') return each.tagName !== 'INPUT' && each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1
    pen.font = font
    return pen.measureText(each.placeholder).width > each.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1
  }
  const isOfBox = (each) => {
    const { left, right } = each.getBoundingClientRect()
    for (let box = each.parentElement; box && box.id !== 'page'; box = box.parentElement) {
      const { overflowX } = getComputedStyle(box)
      if (/auto|scroll/.test(overflowX)) return false
      const edge = box.getBoundingClientRect()
      if (overflowX !== 'visible' && (right > edge.right + 1 || left < edge.left - 1)) return true
    }
    return false
  }
  const ALL = '#page :is(button, a.button, label, select, input, textarea, .badge, h1, h2, h3, th, .tabs a)'
  return [...document.querySelectorAll(ALL)]
    .filter((each) => isShown(each) && !each.closest('.visually-hidden, .cut'))
    .filter((each) => isOfText(each) || isOfBox(each))
    .map((each) => 'is cut: ' + nameOf(each))
})()`
