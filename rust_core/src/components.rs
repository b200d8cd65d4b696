//! The strongly connected components of a graph (Tarjan 1972, without recursion).

/// The components of a graph of `count` nodes, each before those that it leads to, and the component of each node.
/// `successor` gives the n-th successor of a node.
pub(crate) fn components(
    count: usize,
    successor: impl Fn(usize, usize) -> Option<usize>,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    const UNSEEN: usize = usize::MAX;
    let (mut order, mut low, mut on_stack) = (vec![UNSEEN; count], vec![0; count], vec![false; count]);
    let (mut stack, mut found, mut clock) = (Vec::new(), Vec::new(), 0);
    let mut component_of = vec![0; count];
    for root in 0..count {
        if order[root] != UNSEEN {
            continue;
        }
        let mut walk = vec![(root, 0)];
        while let Some((at, next)) = walk.pop() {
            if next == 0 {
                order[at] = clock;
                low[at] = clock;
                clock += 1;
                stack.push(at);
                on_stack[at] = true;
            }
            if let Some(to) = successor(at, next) {
                walk.push((at, next + 1));
                if order[to] == UNSEEN {
                    walk.push((to, 0));
                } else if on_stack[to] {
                    low[at] = low[at].min(order[to]);
                }
                continue;
            }
            if let Some(&(parent, _)) = walk.last() {
                low[parent] = low[parent].min(low[at]);
            }
            if low[at] == order[at] {
                let mut component = Vec::new();
                loop {
                    let member = stack.pop().expect("the component's root is on it");
                    on_stack[member] = false;
                    component_of[member] = found.len();
                    component.push(member);
                    if member == at {
                        break;
                    }
                }
                found.push(component);
            }
        }
    }
    let last = found.len().saturating_sub(1);
    component_of.iter_mut().for_each(|place| *place = last - *place);
    found.reverse();
    (found, component_of)
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_come_before_those_that_they_lead_to() {
        // 0 and 1 lead to each other, and on to 2; 3 leads to itself and to 1; 4 is alone.
        let successors: [&[usize]; 5] = [&[1], &[0, 2], &[], &[3, 1], &[]];
        let (found, of) = components(5, |node, index| successors[node].get(index).copied());
        let mut sorted: Vec<Vec<usize>> = found.clone();
        sorted.iter_mut().for_each(|component| component.sort_unstable());
        let place = |node: usize| sorted.iter().position(|component| component.contains(&node)).expect("in one");
        assert_eq!(sorted.len(), 4);
        assert_eq!(sorted[place(0)], [0, 1]);
        assert!(place(3) < place(0) && place(0) < place(2));
        assert!((0..5).all(|node| of[node] == place(node)));
    }

    #[test]
    fn a_long_path_needs_no_recursion() {
        let (found, _) = components(100_001, |node, index| (index == 0 && node < 100_000).then_some(node + 1));
        assert_eq!(found.len(), 100_001);
        assert_eq!((found[0][0], found[100_000][0]), (0, 100_000));
    }
}
