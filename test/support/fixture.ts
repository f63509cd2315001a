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
