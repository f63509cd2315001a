/** A store whose first claim is acknowledged and then lost: `claimed` makes the answer, and the record stays as it was. Counts the claims. */
export function losingFirstClaim<Store extends object>(store: Store, claimed: (id: string) => Promise<unknown>) {
  const count = { claims: 0 }
  const losing = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]): Promise<unknown> =>
        name === 'begin' && count.claims++ === 0 ? claimed(String(args[1])) : Reflect.apply(value, target, args)
    },
  })
  return { losing, count }
}
