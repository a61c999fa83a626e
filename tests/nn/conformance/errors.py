"""What modules refuse, and in which words."""

from typing import Any

OTHER_WORDS = frozenset({"key_that_is_not_there", "number_for_buffer"})
"""Programs whose error names other things than torch's."""


def parameter_before_init(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            self.weight = torch.nn.Parameter(torch.ones(1))

    return Net()


def module_before_init(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            self.layer = torch.nn.ReLU()

    return Net()


def name_with_a_dot(torch: Any) -> Any:
    torch.nn.Module().register_parameter("a.b", None)


def empty_name(torch: Any) -> Any:
    torch.nn.Module().register_buffer("", None)


def name_that_is_no_string(torch: Any) -> Any:
    torch.nn.Module().register_parameter(3, None)


def taken_name(torch: Any) -> Any:
    torch.nn.ReLU().register_parameter("inplace", None)


def taken_name_of_a_buffer(torch: Any) -> Any:
    torch.nn.Linear(1, 1).register_buffer("weight", None)


def tensor_for_parameter(torch: Any) -> Any:
    torch.nn.Linear(1, 1).weight = torch.ones(1, 1)


def number_for_buffer(torch: Any) -> Any:
    torch.nn.BatchNorm1d(2).running_mean = 3


def number_for_module(torch: Any) -> Any:
    net = torch.nn.Sequential(torch.nn.ReLU())
    setattr(net, "0", 3)


def parameter_with_history(torch: Any) -> Any:
    net = torch.nn.Module()
    x = torch.nn.Parameter(torch.ones(1))
    y = torch.ones(1, requires_grad=True) * 2
    y.__class__ = type(x)
    net.register_parameter("y", y)


def attribute_that_is_not_there(torch: Any) -> Any:
    return torch.nn.ReLU().weight


def submodule_that_is_not_there(torch: Any) -> Any:
    return torch.nn.Sequential().get_submodule("a")


def missing_key(torch: Any) -> Any:
    torch.nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1)})


def unexpected_key(torch: Any) -> Any:
    net = torch.nn.Linear(1, 1, bias=False)
    net.load_state_dict({"weight": torch.ones(1, 1), "x": torch.ones(1)})


def other_size_in_state(torch: Any) -> Any:
    net = torch.nn.Linear(1, 1, bias=False)
    net.load_state_dict({"weight": torch.ones(2, 1)}, strict=False)


def state_that_is_no_mapping(torch: Any) -> Any:
    torch.nn.Linear(1, 1).load_state_dict(3)


def index_outside_of_a_container(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.ReLU())[1]


def key_that_is_not_there(torch: Any) -> Any:
    return torch.nn.ModuleDict({})["a"]


def module_without_forward(torch: Any) -> Any:
    return torch.nn.Module()(1)


def linear_of_other_size(torch: Any) -> Any:
    return torch.nn.Linear(3, 2)(torch.ones(4, 5))


def layer_norm_of_other_size(torch: Any) -> Any:
    return torch.nn.LayerNorm(3)(torch.ones(4, 5))


def channels_that_do_not_divide(torch: Any) -> Any:
    return torch.nn.GroupNorm(2, 3)


def one_value_a_channel(torch: Any) -> Any:
    return torch.nn.BatchNorm1d(3)(torch.ones(1, 3))


def input_for_other_dimensions(torch: Any) -> Any:
    return torch.nn.BatchNorm2d(3)(torch.ones(1, 3))


def embedding_outside(torch: Any) -> Any:
    return torch.nn.Embedding(3, 2)(torch.tensor([3]))


def negative_embedding(torch: Any) -> Any:
    return torch.nn.Embedding(3, 2)(torch.tensor([-1]))


def probability_out_of_range(torch: Any) -> Any:
    return torch.nn.functional.dropout(torch.ones(1), 1.5)


def label_out_of_range(torch: Any) -> Any:
    return torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))


def labels_and_batch(torch: Any) -> Any:
    return torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2]))


def unknown_reduction(torch: Any) -> Any:
    return torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2), reduction="men")


def targets_of_another_size(torch: Any) -> Any:
    return torch.nn.functional.binary_cross_entropy(torch.ones(2), torch.ones(3))


def logits_of_another_size(torch: Any) -> Any:
    call = torch.nn.functional.binary_cross_entropy_with_logits
    return call(torch.ones(2), torch.ones(3))


def negative_beta(torch: Any) -> Any:
    return torch.nn.functional.smooth_l1_loss(torch.ones(2), torch.ones(2), beta=-1.0)


def unknown_gain(torch: Any) -> Any:
    return torch.nn.init.calculate_gain("what")


def fans_of_a_vector(torch: Any) -> Any:
    return torch.nn.init.xavier_uniform_(torch.ones(3))


def no_parameters(torch: Any) -> Any:
    return torch.optim.SGD([], lr=0.1)


def a_tensor_for_parameters(torch: Any) -> Any:
    return torch.optim.SGD(torch.ones(1), lr=0.1)


def a_number_among_parameters(torch: Any) -> Any:
    return torch.optim.SGD([3.0], lr=0.1)


def not_a_leaf(torch: Any) -> Any:
    return torch.optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=0.1)


def negative_rate(torch: Any) -> Any:
    return torch.optim.Adam([torch.ones(1, requires_grad=True)], lr=-0.1)


def beta_out_of_range(torch: Any) -> Any:
    return torch.optim.Adam([torch.ones(1, requires_grad=True)], betas=(0.9, 1.0))


def nesterov_alone(torch: Any) -> Any:
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1, nesterov=True)


def in_two_groups(torch: Any) -> Any:
    x = torch.ones(1, requires_grad=True)
    return torch.optim.SGD([{"params": [x]}, {"params": [x]}], lr=0.1)


def groups_of_another_number(torch: Any) -> Any:
    one = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    x = [torch.ones(1, requires_grad=True) for _ in range(2)]
    other = torch.optim.SGD([{"params": [x[0]]}, {"params": [x[1]]}], lr=0.1)
    one.load_state_dict(other.state_dict())


def group_of_another_size(torch: Any) -> Any:
    one = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    other = torch.optim.SGD([torch.ones(1, requires_grad=True) for _ in range(2)], lr=0.1)
    one.load_state_dict(other.state_dict())


def moved_before_backward(torch: Any) -> Any:
    """A step writes in place: a graph that saved the parameter notices."""
    net = torch.nn.Linear(2, 1)
    x = torch.ones(3, 2, requires_grad=True)
    y = net(x * 2).sum()
    net.weight.grad = torch.ones(1, 2)
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    y.backward()
