import { Component, type ComponentChild, type FunctionComponent, h } from 'preact'

/** A component that is drawn again only when one of its properties has changed. */
export function memo<Props extends object>(view: FunctionComponent<Props>): FunctionComponent<Props> {
  class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      const [before, after] = [this.props as Record<string, unknown>, next as Record<string, unknown>]
      return Object.keys(after).some((name) => after[name] !== before[name])
    }

    override render(props: Readonly<Props>): ComponentChild {
      return h(view, props)
    }
  }
  return Memo as unknown as FunctionComponent<Props>
}
