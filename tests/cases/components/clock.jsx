import { Component, createRef } from "react";

const PATTERN = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/u;

function parse(text) {
  const [, hours, minutes, seconds = "0"] = PATTERN.exec(text) ?? [];
  return hours === undefined ? null : { hours: +hours, minutes: +minutes, seconds: +seconds };
}

export class Clock extends Component {
  static defaultProps = { zone: "UTC", step: 1_000 };
  #timer = null;
  input = createRef();
  state = { now: Date.now() };

  componentDidMount() {
    this.#timer = setInterval(() => this.setState({ now: Date.now() }), this.props.step);
  }

  componentWillUnmount() {
    clearInterval(this.#timer);
  }

  get hands() {
    const now = new Date(this.state.now);
    return [(now.getHours() % 12) / 12, now.getMinutes() / 60, now.getSeconds() / 60];
  }

  change = async (event) => {
    event.preventDefault();
    const time = parse(this.input.current.value);
    try {
      await this.props.onChange?.(time);
    } catch (error) {
      console.error(`no time: ${error.message}`);
    }
  };

  render() {
    const { zone, ...rest } = this.props;
    return (
      <form onSubmit={this.change} {...rest}>
        <svg viewBox="-1 -1 2 2">
          {this.hands.map((part, index) => (
            <line key={index} x2={Math.sin(2 * Math.PI * part)} y2={-Math.cos(2 * Math.PI * part)} stroke-width={0.1} />
          ))}
        </svg>
        <label>
          Time in {zone}: <input ref={this.input} placeholder='12:00' required />
        </label>
        {this.props.children || <Clock.Legend short />}
      </form>
    );
  }
}

Clock.Legend = ({ short }) => (short ? null : <p>Hours, minutes and seconds.</p>);
