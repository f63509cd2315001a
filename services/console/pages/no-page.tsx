import { Empty } from '../parts/notice.tsx'

export const NoPage = () => (
  <Empty
    title="There is no such page"
    action={
      <a class="button main" href="/console/">
        Go home
      </a>
    }
  >
    The address may be mistyped, or your token may not be used for this page.
  </Empty>
)
