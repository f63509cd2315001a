/**
 * Opens something for the tests of the enclosing `describe`, or with `perTest` for each of them. It is there for every hook that is
 * registered after it, and is disposed of after all of them.
 */
export function useFixture<T extends AsyncDisposable>(open: () => Promise<T>, { perTest = false } = {}): () => T {
  let opened: T | undefined
  const close = async () => {
    const closing = opened
    opened = undefined
    await closing?.[Symbol.asyncDispose]()
  }
  let isAdded = false
  before(function () {
    if (isAdded) return // `npm run mutate` runs the same suite again and again.
    isAdded = true
    // A hook that is added while hooks run is the last one: what uses the fixture is closed by then.
    this.test?.parent?.[perTest ? 'afterEach' : 'afterAll'](close)
  })
  const register = perTest ? beforeEach : before
  register(async () => {
    opened = await open()
  })
  return () => {
    if (opened === undefined) throw new Error('a fixture is opened by a hook; use it in later hooks and in tests')
    return opened
  }
}

/** What is open, in the order of its opening: what was opened later may use it, and is closed before. */
const allOpen: { close(): unknown }[] = []

/**
 * Opens something for the tests of the enclosing `describe`, or with `perTest` for each of them, and closes it behind them. It is used
 * like the opened thing itself, in later hooks and in tests.
 */
export function useOpened<T extends { close(): unknown }>(open: () => Promise<T> | T, { perTest = false } = {}): T {
  let opened: T | undefined
  const [atStart, atEnd] = perTest ? [beforeEach, afterEach] : [before, after]
  atStart(async () => {
    opened = await open()
    allOpen.push(opened)
  })
  atEnd(async () => {
    const at = opened === undefined ? -1 : allOpen.indexOf(opened)
    opened = undefined
    if (at >= 0) for (const each of allOpen.splice(at).reverse()) await each.close()
  })
  const use = () => {
    if (opened === undefined) throw new Error('it is opened by a hook; use it in later hooks and in tests')
    return opened
  }
  return new Proxy({} as T, {
    get(_target, key) {
      const value: unknown = Reflect.get(use(), key)
      return typeof value === 'function' ? value.bind(use()) : value
    },
    set: (_target, key, value) => Reflect.set(use(), key, value),
    has: (_target, key) => key in use(),
  })
}
